import { useState } from 'react'
import { Diff, Lines } from '@/components/diff'
import { Text } from '@/components/text'
import { Segments, Tag } from '@/components/ui/tag'
import type { Operation } from '@/lib/api'
import { countDiff } from '@/lib/diff'
import { size } from '@/lib/format'
import { changed } from '@/lib/operation'
import { visible } from '@/lib/safe'
import { useWords } from '@/lib/words'

const shownFiles = 200

// Changes are what an operation did to files.
export function Changes({ op }: { op: Operation }) {
  const w = useWords()
  const [side, setSide] = useState(false)
  const { file } = op
  if (!file) return <Touched op={op} />
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex min-h-9 shrink-0 flex-wrap items-center gap-2 border-b px-4 py-1">
        <span className="min-w-0 flex-1 truncate font-mono text-sm"><Text of={file.path} /></span>
        {file.diff && <Lines {...named(countDiff(file.diff))} />}
        {file.diff && <Segments label={w.details.changes} value={side ? 'side' : 'one'} onChange={(to) => setSide(to === 'side')} options={[{ value: 'one', label: w.details.unified }, { value: 'side', label: w.details.sideBySide }]} />}
      </div>
      <div tabIndex={0} role="region" aria-label={w.details.changes} className="min-h-0 flex-1 overflow-auto">
        {file.diff_truncated && <p className="bg-warn-soft px-4 py-1.5 text-warn">{w.details.diffCut}</p>}
        {file.diff ? <Diff diff={file.diff} side={side} /> : <p className="p-4 text-muted-foreground">{w.details.noDiff}</p>}
        <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 border-t px-4 py-3">
          {file.before_hash && <><dt className="text-muted-foreground">{w.details.before}</dt><dd className="font-mono text-sm break-all">{file.before_hash} {file.before_size !== undefined && size(file.before_size)}</dd></>}
          {file.after_hash && <><dt className="text-muted-foreground">{w.details.after}</dt><dd className="font-mono text-sm break-all">{file.after_hash} {file.after_size !== undefined && size(file.after_size)}</dd></>}
        </dl>
      </div>
    </div>
  )
}

const named = (lines: { added: number; removed: number }) => lines

function Touched({ op }: { op: Operation }) {
  const w = useWords()
  const all = changed(op)
  const kinds = [['created', 'ok'], ['changed', 'plain'], ['deleted', 'fail']] as const
  if (!op.changes) return <p className="p-4 text-muted-foreground">{w.details.unknownChanges}</p>
  return (
    <div tabIndex={0} role="region" aria-label={w.details.changes} className="min-h-0 flex-1 overflow-auto p-4">
      {op.changes.incomplete && <p className="mb-2 text-warn">{w.details.incomplete(visible(op.changes.incomplete))}</p>}
      {(op.changes.with?.length ?? 0) > 0 && <p className="mb-2 text-muted-foreground">{w.details.together}</p>}
      {all.created.length + all.changed.length + all.deleted.length === 0 && <p className="text-muted-foreground">{w.details.noChanges}</p>}
      <ul>
        {kinds.flatMap(([kind, tone]) => all[kind].slice(0, shownFiles).map((path) => (
          <li key={`${kind} ${path}`} className="flex items-center gap-2 py-0.5"><Tag tone={tone}>{w.details[kind]}</Tag><span className="min-w-0 font-mono text-sm break-all"><Text of={path} /></span></li>
        )))}
      </ul>
      {kinds.map(([kind]) => all[kind].length > shownFiles && <p key={kind} className="text-muted-foreground">{w.details[kind]}: {w.details.moreFiles(all[kind].length - shownFiles)}</p>)}
    </div>
  )
}
