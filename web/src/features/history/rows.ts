// The operations that are shown, how they come, and how they are grouped.
import { type InfiniteData, infiniteQueryOptions } from '@tanstack/react-query'
import { type Hit, type Operation, type Page, type Place, read, sandboxPath } from '@/lib/api'
import { type Grouping, type HistorySearch, asked, placeKey } from '@/features/history/filter'
import { hasFailed, isRunning, lineCount } from '@/lib/operation'

export type Row = { op: Operation; at: Place; snippets: Hit['snippets'] }
export type Rows = { rows: Row[]; next?: string; incomplete: boolean }

export const rowKey = (row: Row) => `${placeKey(row.at)}/${row.op.id}`
export const ofHit = (hit: Hit): Row => ({ op: hit.operation, at: { connection: hit.connection, sandbox: hit.sandbox }, snippets: hit.snippets })

const pageSize = 200

export async function readRows(scope: Place | undefined, search: HistorySearch, cursor: string, signal?: AbortSignal): Promise<Rows> {
  const filter = asked(search)
  const more = `${filter ? '&' : '?'}limit=${pageSize}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`
  if (!scope) {
    const page = await read<Page<Hit> & { incomplete: boolean }>(`/operations${filter}${more}`, signal)
    return { rows: page.items.map(ofHit), next: page.next_cursor, incomplete: page.incomplete }
  }
  const page = await read<Page<Operation>>(`${sandboxPath(scope)}/operations${filter}${more}`, signal)
  return { rows: page.items.map((op) => ({ op, at: scope, snippets: [] })), next: page.next_cursor, incomplete: false }
}

export const rowsQuery = (scope: Place | undefined, search: HistorySearch) => infiniteQueryOptions({
  queryKey: ['history', scope ? placeKey(scope) : 'all', asked(search)], initialPageParam: '', staleTime: 30_000,
  queryFn: ({ signal, pageParam }) => readRows(scope, search, pageParam, signal), getNextPageParam: (page) => page.next,
})

// merge brings what has come into what is there: what is known is replaced,
// what is new stands at the head.
export function merge<P>(data: InfiniteData<Rows, P>, news: Row[]): InfiniteData<Rows, P> {
  const left = new Map(news.map((row) => [rowKey(row), row]))
  const pages = data.pages.map((page) => {
    let same = true
    const rows = page.rows.map((row) => {
      const key = rowKey(row)
      const come = left.get(key)
      if (!come) return row
      left.delete(key)
      same = false
      return { ...come, snippets: row.snippets }
    })
    return same ? page : { ...page, rows }
  })
  const head = [...left.values()].sort((a, b) => (a.op.started_at < b.op.started_at ? 1 : -1))
  const [first, ...rest] = pages
  return first && head.length > 0 ? { ...data, pages: [{ ...first, rows: [...head, ...first.rows] }, ...rest] } : { ...data, pages }
}

export type Group = { key: string; grouping: Grouping; name: string; row: Row; rows: Row[]; failed: number; running: boolean; added: number; removed: number; from: string; ms: number }

type Actor = Operation['actor']
const nameOfActor = (actor: Actor) => actor.id || actor.type || ''

// groupKeyOf names the group of an operation; not by hour.
export function groupKeyOf(at: Place, actor: Actor, source: string, grouping: Grouping): string {
  const who = `${placeKey(at)} ${nameOfActor(actor)}`
  if (grouping === 'run') return actor.run_id ? `run ${who} ${actor.run_id}` : `none ${who} ${source}`
  if (grouping === 'thread') return `thread ${actor.thread_id ?? who}`
  return `actor ${nameOfActor(actor)}`
}

function groupKey(row: Row, grouping: Grouping): [key: string, name: string] {
  const { actor, source, started_at: at } = row.op
  if (grouping === 'hour') return [`hour ${at.slice(0, 13)}`, `${at.slice(0, 13)}:00:00Z`]
  return [groupKeyOf(row.at, actor, source, grouping), (grouping === 'run' ? actor.run_id : grouping === 'thread' ? actor.thread_id : '') ?? '']
}

// grouped keeps groups in the order of the first of each that is in the list.
export function grouped(rows: Row[], grouping: Grouping): Group[] {
  const groups = new Map<string, Group>()
  for (const row of rows) {
    const [key, name] = groupKey(row, grouping)
    let group = groups.get(key)
    if (!group) groups.set(key, group = { key, grouping, name, row, rows: [], failed: 0, running: false, added: 0, removed: 0, from: row.op.started_at, ms: 0 })
    group.rows.push(row)
    if (hasFailed(row.op)) group.failed++
    if (isRunning(row.op)) group.running = true
    const { added, removed } = lineCount(row.op)
    group.added += added
    group.removed += removed
  }
  for (const group of groups.values()) {
    let from = Infinity
    let to = 0
    for (const { op } of group.rows) {
      const began = Date.parse(op.started_at)
      from = Math.min(from, began)
      to = Math.max(to, began + op.duration_ms)
    }
    group.from = new Date(from).toISOString()
    group.ms = to - from
  }
  return [...groups.values()]
}

export type Item =
  | { kind: 'group'; key: string; group: Group; open: boolean }
  | { kind: 'row'; key: string; row: Row; nested: boolean }
  | { kind: 'more'; key: string; group: Group; hidden: number; failed: number }

export const firstRows = 12

const openRows = 40

// itemsOf lays rows out for the list. The newest groups stand open, as long as
// they are few rows together; of an open one the newest rows are shown.
export function itemsOf(rows: Row[], grouping: Grouping, toggled: ReadonlySet<string>, unfolded: ReadonlySet<string>): Item[] {
  if (grouping === 'none') return rows.map((row) => ({ kind: 'row', key: rowKey(row), row, nested: false }))
  const items: Item[] = []
  let before = 0
  grouped(rows, grouping).forEach((group, i) => {
    const open = (i === 0 || before + group.rows.length <= openRows) !== toggled.has(group.key)
    before += Math.min(group.rows.length, firstRows)
    items.push({ kind: 'group', key: group.key, group, open })
    if (!open) return
    const all = unfolded.has(group.key) || group.rows.length <= firstRows + 3
    const list = all ? group.rows : group.rows.slice(0, firstRows)
    for (const row of list) items.push({ kind: 'row', key: rowKey(row), row, nested: true })
    const rest = group.rows.slice(list.length)
    if (rest.length > 0) items.push({ kind: 'more', key: `more ${group.key}`, group, hidden: rest.length, failed: rest.filter((row) => hasFailed(row.op)).length })
  })
  return items
}
