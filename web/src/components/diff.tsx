import { useMemo } from 'react'
import { cn } from '@/lib/cn'
import { type DiffLine, readDiff, sideBySide } from '@/lib/diff'
import { count } from '@/lib/format'
import { visible } from '@/lib/safe'

// Lines tells how many lines came and went.
export function Lines({ added, removed }: { added: number; removed: number }) {
  return <span className="whitespace-nowrap">{added > 0 && <span className="text-add">+{count(added)}</span>} {removed > 0 && <span className="text-del">−{count(removed)}</span>}</span>
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
