import { Check, Copy } from 'lucide-react'
import { useState } from 'react'
import { IconButton } from '@/components/ui/button'
import { cn } from '@/lib/cn'
import { clock, moment } from '@/lib/format'
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
