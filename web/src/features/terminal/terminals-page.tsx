import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Plus, X } from 'lucide-react'
import { useState } from 'react'
import { StatusGlyph } from '@/components/glyph'
import { Empty, Notice, Skeleton } from '@/components/notice'
import { Moment, Text } from '@/components/text'
import { Button, IconButton } from '@/components/ui/button'
import { Kbd } from '@/components/ui/tag'
import { toast } from '@/components/ui/toast'
import { TerminalView } from '@/features/terminal/terminal-view'
import { end, open, terminalsQuery } from '@/features/terminal/terminals'
import type { Operation, Place } from '@/lib/api'
import { cn } from '@/lib/cn'
import { useKeys } from '@/lib/hooks'
import { useMay } from '@/lib/may'
import { actorOf, subject } from '@/lib/operation'
import { label, useWords } from '@/lib/words'

export type TerminalSearch = { id?: string }
type Props = { at: Place; running: boolean; search: TerminalSearch; onSearch: (change: TerminalSearch, replace?: boolean) => void }

const undoTime = 10_000

// useClosing ends a terminal after a while in which that can be taken back.
function useClosing(at: Place) {
  const w = useWords()
  const [closing, setClosing] = useState<ReadonlySet<string>>(new Set())
  const client = useQueryClient()
  const change = (id: string, on: boolean) => setClosing((old) => new Set(on ? [...old, id] : [...old].filter((one) => one !== id)))
  const close = (id: string) => {
    change(id, true)
    toast(w.terminal.closed, false, {
      label: w.terminal.undo, ms: undoTime, run: () => change(id, false),
      onEnd: () => void end(at, id).catch((error: Error) => { change(id, false); toast(error.message, true) }).finally(() => void client.invalidateQueries({ queryKey: terminalsQuery(at).queryKey })),
    })
  }
  return { closing, close }
}

// Terminals are the open ones as tabs, and what became of others.
export function Terminals({ at, running, search, onSearch }: Props) {
  const w = useWords()
  const may = useMay('operator')
  const client = useQueryClient()
  const { data, error, refetch } = useQuery({ ...terminalsQuery(at), enabled: running && may })
  const [visited, setVisited] = useState<string[]>([])
  const { closing, close } = useClosing(at)
  const opening = useMutation({
    mutationFn: () => open(at),
    onSuccess: (id) => { void client.invalidateQueries({ queryKey: terminalsQuery(at).queryKey }); show(id) },
  })
  const ready = running && may
  useKeys({ t: ready ? () => opening.mutate() : undefined })
  const show = (id: string) => {
    setVisited((old) => (old.includes(id) ? old : [...old, id]))
    onSearch({ id })
  }
  const live = (data?.running ?? []).filter((op) => !closing.has(op.id)).toReversed()
  const ids = [...live.map((op) => op.id), ...visited.filter((id) => !closing.has(id) && !live.some((op) => op.id === id))]
  const current = search.id && ids.includes(search.id) ? search.id : (search.id && !data ? undefined : ids[0])
  if (current && !visited.includes(current)) setVisited([...visited, current])
  if (!may) return <Empty text={`${w.terminal.needs} ${w.role.needs(label(w.role, 'operator'))}`} />
  if (!running && visited.length === 0) return <Empty text={w.terminal.notRunning} />
  if (error && visited.length === 0) return <div className="p-5"><Notice error={error} onRetry={() => refetch()} /></div>
  if (running && !data && visited.length === 0) return <Skeleton rows={8} height={32} what={w.tabs.terminal} />
  const of = (id: string) => live.find((op) => op.id === id)
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex h-11 shrink-0 items-center gap-1 overflow-x-auto border-b px-4">
        {ids.map((id, i) => <Tab key={id} no={i + 1} op={of(id)} current={id === current} onShow={() => show(id)} onClose={() => (of(id) ? close(id) : setVisited(visited.filter((one) => one !== id)))} />)}
        <Button size="sm" variant={ids.length === 0 ? 'default' : 'ghost'} disabled={!ready || opening.isPending} onClick={() => opening.mutate()}><Plus />{w.terminal.open}{ids.length === 0 && <Kbd>T</Kbd>}</Button>
      </div>
      {opening.error && <div className="p-3"><Notice error={opening.error} /></div>}
      {visited.filter((id) => ids.includes(id)).map((id) => <TerminalView key={id} at={at} id={id} op={of(id)} shown={id === current} onNew={() => opening.mutate()} />)}
      {!current && <Past at={at} list={data?.items ?? []} />}
    </div>
  )
}

function Tab({ op, no, current, onShow, onClose }: { op?: Operation; no: number; current: boolean; onShow: () => void; onClose: () => void }) {
  const w = useWords()
  const name = (op && subject(op)) || w.terminal.shell
  return (
    <span className={cn('flex h-8 shrink-0 items-center rounded-md', current ? 'bg-muted font-medium' : 'text-muted-foreground hover:bg-hover')}>
      <button type="button" aria-current={current} className="flex h-full max-w-56 items-center gap-2 pl-2.5" onClick={onShow}>
        {op ? <StatusGlyph op={op} /> : <span aria-hidden className="size-2 rounded-full border" />}
        <span className="min-w-0 truncate"><Text of={`${no} ${name}`} /></span>
        {op && <span className="max-w-24 truncate text-faint max-phone:hidden"><Text of={actorOf(op)} /></span>}
      </button>
      <IconButton label={w.terminal.close(String(no))} onClick={onClose}><X /></IconButton>
    </span>
  )
}

function Past({ at, list }: { at: Place; list: Operation[] }) {
  const w = useWords()
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <Empty text={w.terminal.none} />
      {list.length > 0 && <h2 className="border-b px-5 py-1.5 text-sm text-faint">{w.terminal.past}</h2>}
      {list.map((op) => (
        <Link key={op.id} to="/sandboxes/$connection/$sandbox/history" params={at} search={{ op: op.id }} className="flex h-9 items-center gap-2 border-b px-5 hover:bg-hover">
          <StatusGlyph op={op} /><span className="min-w-0 truncate font-mono text-sm"><Text of={subject(op) || w.terminal.shell} /></span><span className="flex-1" />
          <span className="text-faint"><Text of={actorOf(op)} /></span><Moment at={op.started_at} className="text-muted-foreground" />
        </Link>
      ))}
    </div>
  )
}
