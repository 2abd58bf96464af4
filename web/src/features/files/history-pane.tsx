import { useInfiniteQuery } from '@tanstack/react-query'
import { Bot, CircleUser, X } from 'lucide-react'
import { useEffect } from 'react'
import { Lines } from '@/components/diff'
import { StatusGlyph } from '@/components/glyph'
import { Notice, Skeleton } from '@/components/notice'
import { Moment, Text } from '@/components/text'
import { Button, IconButton } from '@/components/ui/button'
import { Tag } from '@/components/ui/tag'
import type { Doc } from '@/features/files/desk'
import { type Name, base } from '@/features/files/names'
import { did, versionsQuery } from '@/features/files/versions'
import type { Operation, Place } from '@/lib/api'
import { cn } from '@/lib/cn'
import { shortRun } from '@/lib/format'
import { actorOf, lineCount } from '@/lib/operation'
import { line } from '@/lib/safe'
import { label, useWords } from '@/lib/words'

type Props = { at: Place; name: Name; doc?: Doc; selected?: string; onSelect: (op: string | undefined) => void; onClose: () => void }

// HistoryPane tells who changed a file, newest first.
export function HistoryPane({ at, name, doc, selected, onSelect, onClose }: Props) {
  const w = useWords()
  const found = useInfiniteQuery(versionsQuery(at, name))
  const { refetch } = found
  const hash = doc?.hash
  useEffect(() => {
    if (hash) void refetch()
  }, [hash, refetch])
  const list = (found.data?.pages.flatMap((page) => page.items) ?? []).filter((op) => op.file || did(op, name))
  return (
    <aside aria-label={w.files.historyOf(line(base(name)))} data-history tabIndex={-1} className="flex h-full min-h-0 w-full flex-col bg-background outline-none">
      <div className="flex h-9 shrink-0 items-center gap-2 border-b pr-1.5 pl-4 max-desk:h-11"><h2 className="min-w-0 flex-1 truncate font-medium">{w.files.historyOf(line(base(name)))}</h2><IconButton label={w.act.close} onClick={onClose}><X /></IconButton></div>
      <div className="min-h-0 flex-1 overflow-y-auto">
        {found.error && <div className="p-3"><Notice error={found.error} onRetry={() => refetch()} /></div>}
        {found.isPending && <Skeleton rows={5} height={50} />}
        <ul>
          {doc?.dirty && (
            <li className={cn('flex gap-2.5 px-4 py-2', !selected && 'bg-selected')}>
              <span aria-hidden className="mt-1 size-2.5 shrink-0 rounded-[2px] border-[1.5px] border-current text-muted-foreground" />
              <button type="button" className="min-w-0 flex-1 text-left" onClick={() => onSelect(undefined)}><span className="block">{w.files.unsaved}</span><span className="block text-sm text-muted-foreground">{w.files.you}</span></button>
            </li>
          )}
          {list.map((op) => <Version key={op.id} op={op} name={name} on={op.id === selected} onSelect={() => onSelect(op.id === selected ? undefined : op.id)} />)}
        </ul>
        {found.isSuccess && list.length === 0 && !found.hasNextPage && <p className="p-4 text-muted-foreground">{w.files.noHistory}</p>}
        {found.hasNextPage && <Button size="sm" variant="ghost" className="m-2" onClick={() => found.fetchNextPage()}>{w.sandboxes.loadMore}</Button>}
      </div>
    </aside>
  )
}

function Version({ op, name, on, onSelect }: { op: Operation; name: Name; on: boolean; onSelect: () => void }) {
  const w = useWords()
  const what = did(op, name)
  const lines = lineCount(op)
  const Icon = op.actor.type === 'user' ? CircleUser : Bot
  return (
    <li>
      <button type="button" aria-pressed={on} onClick={onSelect} className={cn('flex w-full items-start gap-2.5 px-4 py-2 text-left hover:bg-hover', on && 'bg-selected hover:bg-selected')}>
        <span className="mt-0.5"><StatusGlyph op={op} /></span>
        <span className="min-w-0 flex-1">
          <span className="flex items-baseline gap-2"><Moment at={op.started_at} /><span className="flex-1" />{lines.added + lines.removed > 0 ? <Lines {...lines} /> : what && <Tag tone={what === 'deleted' ? 'fail' : what === 'created' ? 'ok' : 'plain'}>{w.details[what]}</Tag>}</span>
          <span className="flex min-w-0 items-center gap-1.5 text-sm text-muted-foreground"><Icon aria-hidden className="size-3.5 shrink-0" strokeWidth={1.6} /><span className="min-w-0 truncate"><Text of={actorOf(op)} />{op.actor.run_id && <> <Text of={shortRun(op.actor.run_id)} /></>}</span></span>
          <span className="block truncate text-sm text-faint">{op.command ? <span className="font-mono"><Text of={op.command.line} /></span> : label(w.kinds, op.type)}</span>
        </span>
      </button>
    </li>
  )
}
