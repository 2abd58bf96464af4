import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Layers, Plus, Search, X } from 'lucide-react'
import { useMemo, useRef, useState } from 'react'
import { type Asking, BoxDialogs, useTurn } from '@/components/box-actions'
import { Empty, Notice, Skeleton } from '@/components/notice'
import { Bar, PageHead } from '@/components/page'
import { CopyButton } from '@/components/text'
import { Button, IconButton } from '@/components/ui/button'
import { Kbd, Segments } from '@/components/ui/tag'
import { CreatePanel } from '@/features/sandboxes/create-panel'
import { SandboxTable, boxKey } from '@/features/sandboxes/sandboxes-view'
import { type SandboxSearch, filters, found, inState, ordered, repeated } from '@/features/sandboxes/search'
import type { Sandbox } from '@/lib/api'
import { isGone, placeOf } from '@/lib/box'
import { cn } from '@/lib/cn'
import { useKeys } from '@/lib/hooks'
import { useMay } from '@/lib/may'
import { sandboxesQuery } from '@/lib/queries'
import { label, useWords } from '@/lib/words'

type Props = { search: SandboxSearch; onSearch: (change: SandboxSearch, replace?: boolean) => void }

export function SandboxesPage({ search, onSearch }: Props) {
  const w = useWords()
  const navigate = useNavigate()
  const may = useMay('operator')
  const input = useRef<HTMLInputElement>(null)
  const list = useInfiniteQuery(sandboxesQuery)
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [current, setCurrent] = useState<string>()
  const [asking, setAsking] = useState<{ boxes: Sandbox[]; what: Asking }>()
  const pages = list.data?.pages
  const all = useMemo(() => (pages ?? []).flatMap((page) => page.items), [pages])
  const answering = useMemo(() => pages?.[0]?.connections ?? [], [pages])
  const [behind, setBehind] = useState(0)
  const serverNow = pages?.[0]?.now
  const [clock, setClock] = useState(serverNow)
  if (serverNow !== clock) { // the server's clock counts, not this machine's
    setClock(serverNow)
    setBehind(serverNow ? Date.parse(serverNow) - list.dataUpdatedAt : 0)
  }
  const fitting = all.filter((box) => found(box, search.q) && (!search.conn || search.conn === box.connection))
  const shown = ordered(fitting.filter((box) => inState(box, search.state)), search)
  const silent = new Map(answering.filter((one) => one.not_answering_since).map((one) => [one.id, one]))
  const groups = search.flat ? [{ boxes: shown }] : answering.filter((one) => !search.conn || one.id === search.conn).map((connection) => ({ connection, boxes: shown.filter((box) => box.connection === connection.id) })).filter((group) => group.boxes.length > 0 || silent.has(group.connection.id))
  const flat = groups.flatMap((group) => group.boxes)
  const at = flat.findIndex((box) => boxKey(box) === current)
  const move = (by: number) => {
    const next = flat[Math.max(0, Math.min(flat.length - 1, at + by))]
    if (next) setCurrent(boxKey(next))
  }
  const select = (keys: string[], on: boolean) => setSelected((old) => {
    const next = new Set(old)
    for (const key of keys) if (on) next.add(key); else next.delete(key)
    return next
  })
  const chosen = all.filter((box) => selected.has(boxKey(box)) && !isGone(box))
  useKeys({
    j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1), '/': () => input.current?.focus(), N: may ? () => onSearch({ create: true }) : undefined,
    x: at < 0 ? undefined : () => current && select([current], !selected.has(current)), r: flat[at] && (() => { const box = flat[at]; if (box && !isGone(box)) setAsking({ boxes: [box], what: 'renew' }) }),
    Enter: flat[at] && (() => { const box = flat[at]; if (box) void navigate({ to: '/sandboxes/$connection/$sandbox/history', params: placeOf(box) }) }),
    Escape: () => (selected.size > 0 ? setSelected(new Set()) : setCurrent(undefined)),
  })
  const running = all.filter((box) => inState(box, 'running')).length
  const none = list.isSuccess && all.length === 0
  return (
    <>
      <PageHead title={w.sandboxes.title} note={list.isSuccess && w.sandboxes.summary(all.length, running)}>
        <Button variant="default" disabled={!may} title={may ? undefined : w.role.needs(label(w.role, 'operator'))} onClick={() => onSearch({ create: true })}><Plus />{w.sandboxes.create}<Kbd>N</Kbd></Button>
      </PageHead>
      <Bar>
        <label className="flex h-[30px] min-w-0 flex-[0_1_310px] items-center gap-2 rounded-md border border-input bg-background px-2 focus-within:border-ring focus-within:ring-1 focus-within:ring-ring max-desk:h-9 max-desk:flex-[1_1_100%]">
          <Search className="size-3.5 text-faint" aria-hidden />
          <input ref={input} type="search" aria-label={w.sandboxes.filter} placeholder={w.sandboxes.filter} value={search.q ?? ''} onChange={(event) => onSearch({ q: event.target.value || undefined }, true)} onKeyDown={(event) => event.key === 'Escape' && input.current?.blur()} className="min-w-0 flex-1 bg-transparent outline-none" />
          <Kbd>/</Kbd>
        </label>
        <Segments label={w.sandboxes.stateCol} value={search.state ?? 'all'} onChange={(state) => onSearch({ state: state === 'all' ? undefined : state })} options={[{ value: 'all', label: w.sandboxes.all }, ...filters.map((value) => ({ value, label: `${w.sandboxes[value]} ${fitting.filter((box) => inState(box, value)).length}` }))]} />
        <span className="flex-1" />
        <Button variant="ghost" aria-pressed={!search.flat} onClick={() => onSearch({ flat: search.flat ? undefined : true })} className={cn('max-desk:hidden', !search.flat && 'text-foreground')}><Layers />{w.sandboxes.group}</Button>
      </Bar>
      <div className="min-h-0 flex-1 overflow-y-auto">
        {list.error && !list.data && <div className="p-5"><Notice error={list.error} onRetry={() => list.refetch()} /></div>}
        {list.isPending && !list.error && <Skeleton what={w.sandboxes.title} />}
        {groups.length > 0 && <SandboxTable groups={groups} search={search} twice={repeated(all)} selected={selected} current={current} behind={behind} silent={(box) => silent.get(box.connection)} onSort={(sort) => onSearch(search.sort === sort ? (search.desc ? { sort: undefined, desc: undefined } : { desc: true }) : { sort, desc: undefined })} onSelect={select} onAsk={(box, what) => setAsking({ boxes: [box], what })} onRetry={() => list.refetch()} />}
        {none && (
          <Empty text={`${w.sandboxes.none} ${w.sandboxes.noneNext}`}>
            <Example text="glassbox run -- python3 --version" />
          </Empty>
        )}
        {!none && list.isSuccess && shown.length === 0 && <Empty text={w.sandboxes.nothing}><Button onClick={() => onSearch({ q: undefined, state: undefined, conn: undefined })}>{w.sandboxes.clear}</Button></Empty>}
        {list.hasNextPage && <div className="p-3 text-center"><Button size="sm" onClick={() => list.fetchNextPage()}>{w.sandboxes.loadMore}</Button></div>}
      </div>
      {chosen.length > 0 && <Selection boxes={chosen} onAsk={(what) => setAsking({ boxes: chosen, what })} onClose={() => setSelected(new Set())} />}
      {search.create && <CreatePanel onClose={() => onSearch({ create: undefined })} />}
      {asking && <BoxDialogs boxes={asking.boxes} asking={asking.what} onClose={(done) => {
        setAsking(undefined)
        if (done) setSelected(new Set())
      }} />}
    </>
  )
}

function Example({ text }: { text: string }) {
  return <p className="flex items-center gap-2 rounded-md border bg-muted py-0.5 pr-0.5 pl-2.5 font-mono text-sm">{text}<CopyButton text={text} /></p>
}

function Selection({ boxes, onAsk, onClose }: { boxes: Sandbox[]; onAsk: (asking: Asking) => void; onClose: () => void }) {
  const w = useWords()
  const turn = useTurn()
  const may = useMay('operator')
  const running = boxes.filter((box) => box.state === 'Running')
  const paused = boxes.filter((box) => box.state === 'Paused')
  return (
    <div role="toolbar" aria-label={w.sandboxes.selected(boxes.length)} className="fixed bottom-5 left-1/2 z-30 flex -translate-x-1/2 items-center gap-1 rounded-lg border bg-popover py-1.5 pr-1.5 pl-3.5 shadow-floating max-desk:bottom-18">
      <span className="mr-2 font-medium whitespace-nowrap">{w.sandboxes.selected(boxes.length)}</span>
      <Button variant="ghost" disabled={!may} onClick={() => onAsk('renew')}>{w.box.renew}</Button>
      {running.length > 0 && <Button variant="ghost" disabled={!may} onClick={() => Promise.all(running.map((box) => turn(box, 'pause')))}>{w.box.pause}</Button>}
      {paused.length > 0 && <Button variant="ghost" disabled={!may} onClick={() => Promise.all(paused.map((box) => turn(box, 'resume')))}>{w.box.resume}</Button>}
      <Button variant="ghost" className="text-fail hover:text-fail" disabled={!may} onClick={() => onAsk('delete')}>{w.box.remove}</Button>
      <IconButton label={w.act.close} onClick={onClose}><X /></IconButton>
    </div>
  )
}
