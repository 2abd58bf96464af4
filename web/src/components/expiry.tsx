import type { Sandbox } from '@/lib/api'
import { isGone } from '@/lib/box'
import { cn } from '@/lib/cn'
import { age } from '@/lib/format'
import { useNow } from '@/lib/hooks'
import { useLang, useWords } from '@/lib/words'

const soon = 10 * 60_000

// Expiry counts down; behind is how far this clock is behind the server's.
export function Expiry({ box, behind = 0, bar }: { box: Sandbox; behind?: number; bar?: boolean }) {
  const w = useWords()
  const lang = useLang()
  const now = useNow() + behind
  if (isGone(box)) return <span className="text-faint">—</span>
  if (!box.expires_at) return <span className="text-muted-foreground">{w.sandboxes.never}</span>
  const end = Date.parse(box.expires_at)
  const left = end - now
  const whole = Math.max(1, end - Date.parse(box.created_at))
  const near = left < soon
  return (
    <span title={new Date(end).toISOString()} className={cn('inline-flex flex-col gap-1', near && 'text-warn')}>
      {left > 0 ? age(left, lang) : w.sandboxes.expired}
      {bar && <span aria-hidden className="h-0.5 w-24 bg-border max-desk:hidden"><span className={cn('block h-full', near ? 'bg-warn' : 'bg-muted-foreground')} style={{ width: `${Math.max(0, Math.min(100, (left / whole) * 100))}%` }} /></span>}
    </span>
  )
}
