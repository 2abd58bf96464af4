import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Diff, Lines } from '@/components/diff'
import { Notice, Skeleton } from '@/components/notice'
import { Moment, Text } from '@/components/text'
import { IconButton } from '@/components/ui/button'
import { Segments } from '@/components/ui/tag'
import { X } from 'lucide-react'
import type { Place } from '@/lib/api'
import { actorOf, lineCount } from '@/lib/operation'
import { operationQuery } from '@/lib/queries'
import { label, useWords } from '@/lib/words'

type Props = { at: Place; op: string; side: boolean; onSide: (side: boolean) => void; onClose: () => void }

// VersionView shows what an operation changed in a file.
export function VersionView({ at, op: id, side, onSide, onClose }: Props) {
  const w = useWords()
  const { data: op, error, refetch } = useQuery(operationQuery(at, id))
  if (error) return <div className="p-4"><Notice error={error} onRetry={() => refetch()} /></div>
  if (!op) return <Skeleton rows={16} height={20} />
  const lines = lineCount(op)
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex min-h-9 shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-b bg-sidebar px-4 py-1 text-sm text-muted-foreground">
        <span><Moment at={op.started_at} exact /> <Text of={actorOf(op)} className="text-foreground" /> {label(w.kinds, op.type)}</span>
        {lines.added + lines.removed > 0 && <Lines {...lines} />}
        <span className="flex-1" />
        {op.file?.diff && <Segments label={w.details.changes} value={side ? 'side' : 'one'} onChange={(to) => onSide(to === 'side')} options={[{ value: 'one', label: w.details.unified }, { value: 'side', label: w.details.sideBySide }]} />}
        <Link to="/sandboxes/$connection/$sandbox/history" params={at} search={{ op: op.id }} className="text-brand hover:underline">{w.files.openOperation}</Link>
        <IconButton label={w.files.backToFile} onClick={onClose}><X /></IconButton>
      </div>
      <div tabIndex={0} role="region" aria-label={w.details.changes} className="min-h-0 flex-1 overflow-auto py-2 outline-none">
        {op.command && <pre className="mx-4 mb-2 rounded-md border bg-muted/60 px-2.5 py-1.5 font-mono text-sm break-all whitespace-pre-wrap"><Text of={op.command.line} /></pre>}
        {op.file?.diff_truncated && <p className="bg-warn-soft px-4 py-1.5 text-warn">{w.details.diffCut}</p>}
        {op.file?.diff ? <Diff diff={op.file.diff} side={side} /> : <p className="px-4 py-2 text-muted-foreground">{op.command ? w.files.byCommand : w.details.noDiff}</p>}
      </div>
    </div>
  )
}
