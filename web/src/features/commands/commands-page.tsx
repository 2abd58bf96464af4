import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { RotateCcw } from 'lucide-react'
import { useState } from 'react'
import { StatusGlyph } from '@/components/glyph'
import { Empty, Notice, Skeleton } from '@/components/notice'
import { Moment, Text, Took } from '@/components/text'
import { Button, IconButton } from '@/components/ui/button'
import { Tag } from '@/components/ui/tag'
import { CommandPane } from '@/features/commands/command-pane'
import { type Draft, commandsQuery, draftOf, emptyDraft, start } from '@/features/commands/commands'
import { RunForm } from '@/features/commands/run-form'
import type { Operation, Place } from '@/lib/api'
import { cn } from '@/lib/cn'
import { useMay } from '@/lib/may'
import { actorOf, isRunning } from '@/lib/operation'
import { operationQuery } from '@/lib/queries'
import { label, useWords } from '@/lib/words'

export type CommandSearch = { id?: string }
type Props = { at: Place; running: boolean; search: CommandSearch; onSearch: (change: CommandSearch, replace?: boolean) => void }

// What is being written stays, also over a sign-in.
const drafts = new Map<string, Draft>()

// Commands is where commands are run, watched, and run again.
export function Commands({ at, running, search, onSearch }: Props) {
  const w = useWords()
  const may = useMay('operator')
  const client = useQueryClient()
  const key = `${at.connection}/${at.sandbox}`
  const [draft, setDraft] = useState<Draft>(drafts.get(key) ?? emptyDraft)
  const { data, error, refetch, hasNextPage, fetchNextPage } = useInfiniteQuery(commandsQuery(at))
  const live = data?.pages[0]?.running ?? []
  const past = (data?.pages ?? []).flatMap((page) => page.items).filter((op) => !live.some((one) => one.id === op.id))
  const inList = [...live, ...past].find((op) => op.id === search.id)
  const asked = useQuery({ ...operationQuery(at, search.id ?? ''), enabled: Boolean(search.id && !inList), retry: 3 })
  const op = search.id ? (inList ?? asked.data) : undefined
  const change = (next: Draft) => {
    drafts.set(key, next)
    setDraft(next)
  }
  const starting = useMutation({
    mutationFn: (given: Draft) => start(at, given),
    onSuccess: (id, given) => {
      if (given.command === draft.command) change({ ...given, command: '' })
      void client.invalidateQueries({ queryKey: commandsQuery(at).queryKey })
      onSearch({ id })
    },
  })
  if (error && !data) return <div className="p-5"><Notice error={error} onRetry={() => refetch()} /></div>
  const newest = [...live, ...past].sort((a, b) => (a.started_at < b.started_at ? 1 : -1))
  const earlier = [...new Set(newest.map((one) => one.command?.line ?? '').filter(Boolean))]
  const listed = (list: Operation[]) => list.map((one) => <CommandRow key={one.id} op={one} current={one.id === op?.id} narrow={op !== undefined} onShow={() => onSearch({ id: one.id })} onAgain={running && may ? () => starting.mutate(draftOf(one)) : undefined} />)
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      {running && <RunForm draft={draft} onDraft={change} earlier={earlier} disabled={!may} error={starting.error} onRun={(given) => starting.mutate(given)} />}
      {running && !may && <p className="border-b px-5 py-1.5 text-muted-foreground">{w.role.needs(label(w.role, 'operator'))}</p>}
      {!running && <p className="border-b px-5 py-1.5 text-muted-foreground">{w.commands.notRunning}</p>}
      <div className="flex min-h-0 flex-1">
        <div className={cn('flex min-h-0 flex-col overflow-y-auto', op ? 'w-[380px] shrink-0 border-r max-desk:hidden' : 'flex-1')}>
          {!data && <Skeleton rows={10} height={36} what={w.tabs.commands} />}
          {live.length > 0 && <h2 className="border-b px-5 py-1.5 text-sm text-faint">{w.commands.running(live.length)}</h2>}
          {listed(live)}
          {past.length > 0 && <h2 className="border-b px-5 py-1.5 text-sm text-faint">{w.commands.earlier}</h2>}
          {listed(past)}
          {data && live.length + past.length === 0 && <Empty text={w.commands.none} />}
          {hasNextPage && <Button variant="ghost" className="m-3 self-start" onClick={() => void fetchNextPage()}>{w.commands.older}</Button>}
        </div>
        {op && (may ? <CommandPane key={op.id} at={at} op={op} running={running && may} onAgain={() => starting.mutate(draftOf(op))} onEdit={() => change(draftOf(op))} onEnd={() => void client.invalidateQueries({ queryKey: commandsQuery(at).queryKey })} onClose={() => onSearch({})} />
          : <Empty text={w.role.needs(label(w.role, 'operator'))} />)}
        {search.id && !op && asked.error && <div className="min-w-0 flex-1 p-4"><Notice error={asked.error} title={w.details.notFound} /></div>}
      </div>
    </div>
  )
}

type RowProps = { op: Operation; current: boolean; narrow: boolean; onShow: () => void; onAgain?: () => void }

function CommandRow({ op, current, narrow, onShow, onAgain }: RowProps) {
  const w = useWords()
  const code = op.command?.exit_code
  return (
    <div className={cn('group flex h-9 shrink-0 items-center gap-2 border-b pr-2 pl-5 max-desk:h-11 max-desk:pl-4', current ? 'bg-selected' : 'hover:bg-hover')}>
      <button type="button" aria-current={current} onClick={onShow} className="flex h-full min-w-0 flex-1 items-center gap-2 text-left">
        <StatusGlyph op={op} />
        <span className="min-w-0 flex-1 truncate font-mono text-sm"><Text of={op.command?.line ?? ''} /></span>
        {code !== undefined && code !== 0 && !isRunning(op) && <Tag tone="fail">{w.history.exit(code)}</Tag>}
        {!narrow && <span className="max-w-40 shrink-0 truncate text-faint max-phone:hidden"><Text of={actorOf(op)} /></span>}
        <span className="shrink-0 text-muted-foreground"><Took op={op} /></span>
        {!narrow && <Moment at={op.started_at} className="min-w-[62px] shrink-0 text-right text-faint max-phone:hidden" />}
      </button>
      {onAgain && !isRunning(op) ? <IconButton label={w.commands.again} onClick={onAgain} className="opacity-0 group-hover:opacity-100 focus-visible:opacity-100"><RotateCcw /></IconButton> : <span className="w-7 shrink-0" />}
    </div>
  )
}
