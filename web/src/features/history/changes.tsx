import { useMemo, useState } from 'react'
import { Text } from '@/components/text'
import { Segments, Tag } from '@/components/ui/tag'
import { Lines } from '@/features/history/row'
import type { Operation } from '@/lib/api'
import { cn } from '@/lib/cn'
import { type DiffLine, countDiff, readDiff, sideBySide } from '@/lib/diff'
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

const tones: Record<DiffLine['kind'], string> = { add: 'bg-add-bg', del: 'bg-del-bg', same: '', hunk: 'bg-muted text-faint', note: 'text-faint' }
const signs: Record<DiffLine['kind'], string> = { add: '+', del: '−', same: ' ', hunk: '', note: '' }

export function Diff({ diff, side }: { diff: string; side: boolean }) {
  const list = useMemo(() => readDiff(diff), [diff])
  if (side) {
    return (
      <table className="w-full table-fixed border-collapse font-mono text-sm"><tbody>
        {sideBySide(list).map((pair, i) => (
          <tr key={i} className="align-top"><Half of={pair.left} no={pair.left?.old} /><Half of={pair.right} no={pair.right?.new} /></tr>
        ))}
      </tbody></table>
    )
  }
  return (
    <table className="w-full border-collapse font-mono text-sm"><tbody>
      {list.map((one, i) => (
        <tr key={i} className={tones[one.kind]}>
          <td className="w-10 px-1.5 text-right align-top text-faint select-none">{one.old}</td><td className="w-10 px-1.5 text-right align-top text-faint select-none">{one.new}</td>
          <td className={cn('w-4 align-top select-none', one.kind === 'add' && 'text-add', one.kind === 'del' && 'text-del')}>{signs[one.kind]}</td>
          <td className="break-all whitespace-pre-wrap">{visible(one.text)}</td>
        </tr>
      ))}
    </tbody></table>
  )
}

function Half({ of, no }: { of?: DiffLine; no?: number }) {
  return (
    <td className={cn('w-1/2 border-r last:border-r-0', of && tones[of.kind])}>
      <div className="flex"><span className="w-10 shrink-0 px-1.5 text-right text-faint select-none">{no}</span><span className="min-w-0 break-all whitespace-pre-wrap">{of && visible(of.text)}</span></div>
    </td>
  )
}
