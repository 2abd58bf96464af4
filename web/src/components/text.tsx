import { Check, Copy } from 'lucide-react'
import { useState } from 'react'
import { IconButton } from '@/components/ui/button'
import { cn } from '@/lib/cn'
import type { Operation } from '@/lib/api'
import { age, clock, moment, span } from '@/lib/format'
import { useNow } from '@/lib/hooks'
import { isRunning } from '@/lib/operation'
import { line } from '@/lib/safe'
import { useLang, useWords } from '@/lib/words'

// Text shows a name or another short text of a sandbox, on one line and in
// its own direction.
export function Text({ of, className }: { of: string; className?: string }) {
  return <bdi className={className}>{line(of)}</bdi>
}

export function Moment({ at, exact, className }: { at: string; exact?: boolean; className?: string }) {
  const lang = useLang()
  const date = new Date(at)
  const utc = Number.isNaN(date.getTime()) ? at : date.toISOString()
  const text = moment(at, lang)
  return <time dateTime={utc} title={utc} className={className}>{exact && text === clock(date) ? clock(date, true) : text}</time>
}

// Took is how long an operation took, or takes so far.
export function Took({ op }: { op: Operation }) {
  const lang = useLang()
  return isRunning(op) ? <Since at={op.started_at} /> : span(op.duration_ms, lang)
}

function Since({ at }: { at: string }) {
  const lang = useLang()
  const now = useNow()
  return <span className="text-brand">{age(Math.max(0, now - Date.parse(at)), lang)}</span>
}

export function CopyButton({ text, label, className }: { text: string; label?: string; className?: string }) {
  const w = useWords()
  const [done, setDone] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setDone(true)
    setTimeout(() => setDone(false), 1500)
  }
  return <IconButton label={done ? w.act.copied : (label ?? w.act.copy)} onClick={copy} className={cn('size-[26px]', className)}>{done ? <Check /> : <Copy />}</IconButton>
}
