// What the address picks of a history.
import type { operations } from '@/gen/api'
import { type Place, query } from '@/lib/api'
import type { Row } from '@/features/history/rows'
import { isRead } from '@/lib/operation'

export const groupings = ['run', 'thread', 'actor', 'hour', 'none'] as const
export type Grouping = (typeof groupings)[number]

const texts = ['q', 'type', 'status', 'actor', 'run', 'thread', 'path', 'exit', 'source', 'sandbox', 'since', 'until', 'op'] as const
export type FilterName = Exclude<(typeof texts)[number], 'q' | 'op'>
export const filterNames: FilterName[] = ['sandbox', 'type', 'status', 'actor', 'run', 'thread', 'path', 'exit', 'source', 'since', 'until']

export type HistorySearch = { [name in (typeof texts)[number]]?: string } & { group?: Grouping; order?: 'oldest'; reads?: true; live?: false }

// readSearch takes from an address what a history knows.
export function readSearch(given: Record<string, unknown>): HistorySearch {
  const out: HistorySearch = {}
  for (const name of texts) {
    const value = given[name]
    if (typeof value === 'string' || typeof value === 'number') out[name] = String(value).slice(0, 1024) || undefined
  }
  out.group = groupings.find((one) => one === given.group)
  if (given.order === 'oldest') out.order = 'oldest'
  if (given.reads === true) out.reads = true
  if (given.live === false) out.live = false
  return out
}

const types: Record<string, string[]> = {
  command: ['command.execute'], terminal: ['terminal.session'],
  file: ['file.read', 'file.write', 'file.list', 'file.delete', 'file.append', 'file.edit', 'file.stat', 'file.mkdir', 'file.move', 'file.chmod', 'file.glob', 'file.grep', 'file.download', 'file.upload'],
  sandbox: ['sandbox.create', 'sandbox.delete', 'sandbox.pause', 'sandbox.resume', 'sandbox.renew', 'sandbox.metadata', 'sandbox.snapshot'],
  gap: ['history.gap', 'recorder.restarted'], network: ['network.connect'],
}

const statuses: Record<string, string[]> = { failed: ['failed', 'timeout', 'unknown', 'denied'], running: ['started'], stopped: ['cancelled'] }

// What the server knows to pick by, of one history and of all.
type Asked = NonNullable<operations['list-operations']['parameters']['query']> & NonNullable<operations['search-operations']['parameters']['query']>

// asked is the question to the server.
export function asked(search: HistorySearch): string {
  const [connection, sandbox] = search.sandbox?.split('/') ?? []
  const filter: Asked = {
    q: search.q, type: search.type ? (types[search.type] ?? [search.type]) : undefined, status: search.status ? (statuses[search.status] ?? [search.status]) : undefined, actor: search.actor, run: search.run, thread: search.thread,
    path: search.path, exit_code: search.exit && /^-?\d+$/.test(search.exit) ? Number(search.exit) : undefined, source: search.source ? [search.source] : undefined, since: search.since, until: search.until, order: search.order, connection, sandbox,
  }
  return query(filter)
}

// picks reports whether a new operation belongs into the list; undefined: only
// the server knows.
export function picks(search: HistorySearch, row: Row): boolean | undefined {
  const { op, at } = row
  const among = (list: string[] | undefined, name: string | undefined, value: string) => name === undefined || (list ?? [name]).includes(value)
  const fits = among(search.type ? types[search.type] : undefined, search.type, op.type) && among(search.status ? statuses[search.status] : undefined, search.status, op.status) &&
    among(undefined, search.actor, op.actor.id ?? '') && among(undefined, search.run, op.actor.run_id ?? '') && among(undefined, search.thread, op.actor.thread_id ?? '') && among(undefined, search.source, op.source) &&
    among(undefined, search.exit, String(op.command?.exit_code ?? '')) && (!search.since || op.started_at >= search.since) && (!search.until || op.started_at < search.until) && among(undefined, search.sandbox, `${at.connection}/${at.sandbox}`)
  if (fits && (search.q || search.path)) return undefined
  return fits
}

export const shownReads = (search: HistorySearch) => Boolean(search.reads || search.type || search.q || search.path)
export const shown = (search: HistorySearch, row: Row) => shownReads(search) || !isRead(row.op.type)

// readTyped takes name:value out of what was typed, the rest is looked for.
export function readTyped(text: string): HistorySearch {
  const out: HistorySearch = {}
  const rest = text.replace(/(?:^|\s)(type|status|actor|run|thread|path|exit|source):(?:"([^"]*)"|(\S+))/g, (_, name: FilterName, quoted?: string, plain?: string) => {
    out[name] = quoted ?? plain
    return ''
  }).trim()
  out.q = rest || undefined
  return out
}

export const isFiltered = (search: HistorySearch) => Boolean(search.q) || filterNames.some((name) => search[name])

export const placeKey = (at: Place) => `${at.connection}/${at.sandbox}`
