import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useMemo, useRef, useState } from 'react'
import { Empty, Notice, Skeleton, Warning } from '@/components/notice'
import { Button } from '@/components/ui/button'
import { Details, copyLink } from '@/features/history/details'
import { ExportDialog } from '@/features/history/export-dialog'
import { FilterBar } from '@/features/history/filter-bar'
import { type HistorySearch, filterNames, isFiltered, picks, placeKey, shown, shownReads } from '@/features/history/filter'
import { HistoryList } from '@/features/history/history-view'
import { type Row, merge, ofHit, rowKey, rowsQuery } from '@/features/history/rows'
import { Strip } from '@/features/history/strip'
import { summaryQuery, totals } from '@/features/history/summary'
import { type Hit, type Operation, type Place, Problem, sandboxPath } from '@/lib/api'
import { cn } from '@/lib/cn'
import { useKeys } from '@/lib/hooks'
import { useLive } from '@/lib/live'
import { hasFailed } from '@/lib/operation'
import { operationQuery, sandboxesQuery } from '@/lib/queries'
import { useWords } from '@/lib/words'

type Props = { scope?: Place; follow?: boolean; search: HistorySearch; onSearch: (change: HistorySearch, replace?: boolean) => void }

// useNames tells the name of a sandbox by its place.
function useNames() {
  const { data } = useInfiniteQuery(sandboxesQuery)
  return useMemo(() => {
    const names = new Map((data?.pages ?? []).flatMap((page) => page.items).map((box) => [`${box.connection}/${box.id}`, box.name || box.id]))
    return (key: string) => names.get(key) ?? key.split('/')[1] ?? key
  }, [data])
}

// useHistory is the list, with what comes while it is looked at.
function useHistory({ scope, follow = true, search }: Props) {
  const client = useQueryClient()
  const options = rowsQuery(scope, search)
  const found = useInfiniteQuery(options)
  const [held, setHeld] = useState<Row[]>([])
  const [said, setSaid] = useState<Row[]>([])
  const top = useRef(true)
  const take = useCallback((rows: Row[]) => {
    client.setQueryData(options.queryKey, (data) => data && merge(data, rows))
    setHeld([])
  }, [client, options.queryKey])
  const arrive = (rows: Row[]) => {
    const known = new Set(found.data?.pages.flatMap((page) => page.rows.map(rowKey)))
    const old = rows.filter((row) => known.has(rowKey(row)))
    const news = rows.filter((row) => !known.has(rowKey(row)) && !search.until)
    if (news.some((row) => picks(search, row) === undefined)) void client.invalidateQueries({ queryKey: options.queryKey })
    const fresh = search.order === 'oldest' ? [] : news.filter((row) => picks(search, row))
    const waiting = merged(held, fresh)
    if (top.current) take([...old, ...waiting])
    else {
      if (old.length > 0) client.setQueryData(options.queryKey, (data) => data && merge(data, old))
      setHeld(waiting)
    }
    if (fresh.length > 0) setSaid(fresh)
  }
  const on = search.live !== false && follow && found.isSuccess
  const path = on ? (scope ? `${sandboxPath(scope)}/events` : '/events') : undefined
  const live = useLive<Operation | Hit>(path, {
    onEvents: (events) => arrive(events.map((one) => ('operation' in one ? ofHit(one) : { op: one, at: scope ?? { connection: '', sandbox: '' }, snippets: [] }))),
    onReset: () => void client.invalidateQueries({ queryKey: options.queryKey }),
  })
  return { found, held, said, live, takeHeld: () => take(held), setTop: (at: boolean) => { top.current = at; if (at && held.length > 0) take(held) } }
}

function merged(old: Row[], news: Row[]): Row[] {
  const all = new Map(old.map((row) => [rowKey(row), row]))
  for (const row of news) all.set(rowKey(row), row)
  return [...all.values()]
}

// useSelected is the operation in the address: of the list, else asked for.
function useSelected(scope: Place | undefined, op: string | undefined, rows: Row[]) {
  const parts = op?.split('/') ?? []
  const at = scope ?? (parts.length === 3 ? { connection: parts[0] ?? '', sandbox: parts[1] ?? '' } : undefined)
  const id = parts.at(-1) ?? ''
  const inList = op && at ? rows.find((row) => row.op.id === id && placeKey(row.at) === placeKey(at)) : undefined
  const asked = useQuery({ ...operationQuery(at ?? { connection: '', sandbox: '' }, id), enabled: Boolean(op && at && !inList) })
  const row = inList ?? (asked.data && at ? { op: asked.data, at, snippets: [] } : undefined)
  return { row: op ? row : undefined, inList: Boolean(inList), error: op && !inList ? asked.error : null }
}

export function History(props: Props) {
  const { scope, search, onSearch } = props
  const w = useWords()
  const names = useNames()
  const { found, held, said, live, takeHeld, setTop } = useHistory(props)
  const [jump, setJump] = useState<{ time: number }>()
  const [exporting, setExporting] = useState(false)
  const all = useMemo(() => found.data?.pages.flatMap((page) => page.rows) ?? [], [found.data])
  const rows = useMemo(() => all.filter((row) => shown(search, row)), [all, search.reads, search.type, search.q, search.path]) // eslint-disable-line react-hooks/exhaustive-deps -- shown looks at these
  const grouping = search.group ?? (search.q ? 'none' : 'run')
  const { data: summary } = useQuery({ ...summaryQuery(scope, search, grouping), enabled: !search.q && found.isSuccess && found.hasNextPage })
  const counts = useMemo(() => totals(summary, grouping), [summary, grouping])
  const selected = useSelected(scope, search.op, all)
  const open = useCallback((row: Row | undefined) => onSearch({ op: row && (scope ? row.op.id : rowKey(row)) }, true), [onSearch, scope])
  const more = useCallback(() => void found.fetchNextPage(), [found.fetchNextPage]) // eslint-disable-line react-hooks/exhaustive-deps -- it stays the same
  const { row } = selected
  useKeys({ y: row && (() => void copyLink(row, w.act.copied)) })
  const move = (by: number) => {
    const at = rows.findIndex((one) => row && rowKey(one) === rowKey(row))
    const next = rows[at + by]
    if (at >= 0 && next) open(next)
  }
  const clear = () => onSearch({ q: undefined, ...Object.fromEntries(filterNames.map((name) => [name, undefined])) })
  const range = (from?: number, to?: number) => onSearch({ since: from === undefined ? undefined : new Date(from).toISOString(), until: to === undefined ? undefined : new Date(to).toISOString() })
  const noMirror = found.error instanceof Problem && found.error.code === 'mirror_not_kept'
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <FilterBar search={search} onSearch={onSearch} live={live} sandboxName={names} onExport={() => setExporting(true)} />
      {rows.length > 0 && <Strip rows={rows} summary={found.hasNextPage ? summary : undefined} reads={shownReads(search)} selected={row} live={live === 'live' && !search.until} zoomed={Boolean(search.since || search.until)} onRange={range} onJump={(time) => setJump({ time })} />}
      <p role="status" className="sr-only">{said.length > 0 && w.history.spoken(said.length, said.filter((one) => hasFailed(one.op)).length)}</p>
      <div className="relative flex min-h-0 flex-1">
        <div className="flex min-w-0 flex-1 flex-col">
          {noMirror ? <Empty text={`${w.history.noMirror} ${w.history.noMirrorNext}`} /> : found.error && <div className="p-5"><Notice error={found.error} onRetry={() => found.refetch()} /></div>}
          {found.isPending && !found.error && <Skeleton rows={14} height={32} what={w.history.title} />}
          {found.data?.pages.at(-1)?.incomplete && <Warning action={<Button size="sm" onClick={more}>{w.history.goOn}</Button>}>{w.history.incomplete}</Warning>}
          {found.isSuccess && rows.length === 0 && !found.hasNextPage && (
            isFiltered(search) ? <Empty text={w.history.nothing}><Button onClick={clear}>{w.history.clear}</Button></Empty> : <Empty text={`${w.history.empty} ${w.history.emptyNext}`} />
          )}
          {found.isSuccess && (rows.length > 0 || found.hasNextPage) && (
            <HistoryList
              rows={rows} grouping={grouping} totals={counts} selected={row && rowKey(row)} whole={!found.hasNextPage} loadingMore={found.isFetchingNextPage} held={held.length} jump={jump} sandboxName={scope ? undefined : names}
              onOpen={open} onMore={more} onTop={setTop} onHeld={takeHeld}
              foot={<p className="px-5 py-3 text-center text-sm text-faint">{found.hasNextPage ? w.history.loading : w.history.end}</p>}
            />
          )}
        </div>
        {(row || selected.error) && (
          <div className={cn('shrink-0 border-l max-desk:absolute max-desk:inset-0 max-desk:z-30 max-desk:border-0 desk:w-[496px] max-wide:desk:w-[420px]')}>
            {row ? <Details key={rowKey(row)} row={row} sandbox={scope ? undefined : names(placeKey(row.at))} inList={selected.inList} onClose={() => open(undefined)} onMove={move} /> : (
              <div className="flex flex-col items-start gap-2 bg-background p-4"><Notice error={selected.error} title={w.details.notFound} /><Button size="sm" onClick={() => open(undefined)}>{w.act.close}</Button></div>
            )}
          </div>
        )}
      </div>
      {exporting && <ExportDialog scope={scope} search={search} onClose={() => setExporting(false)} />}
    </div>
  )
}
