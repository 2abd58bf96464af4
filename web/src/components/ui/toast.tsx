import { X } from 'lucide-react'
import { useSyncExternalStore } from 'react'
import { Button, IconButton } from '@/components/ui/button'
import { cn } from '@/lib/cn'
import { useWords } from '@/lib/words'

// An Act is what can still be done about what a toast says: as long as it
// stands, and not once it is closed.
export type Act = { label: string; run: () => void; ms?: number; onEnd?: () => void }
type Toast = { id: number; text: string; bad: boolean; act?: Act }

let list: Toast[] = []
let last = 0
const listeners = new Set<() => void>()
const set = (next: Toast[]) => {
  list = next
  for (const changed of listeners) changed()
}

function close(id: number, taken = false) {
  const one = list.find((other) => other.id === id)
  if (!one) return
  set(list.filter((other) => other !== one))
  if (taken) one.act?.run()
  else one.act?.onEnd?.()
}

// toast says one line; what went wrong stays until it is closed.
export function toast(text: string, bad = false, act?: Act) {
  const id = ++last
  const next = [...list, { id, text, bad, act }]
  for (const old of next.slice(0, -3)) close(old.id)
  set(next.slice(-3))
  if (!bad) setTimeout(() => close(id), act?.ms ?? 5000)
  return () => close(id)
}

export function Toasts() {
  const w = useWords()
  const now = useSyncExternalStore((changed) => {
    listeners.add(changed)
    return () => listeners.delete(changed)
  }, () => list)
  return (
    <div role="status" className="pointer-events-none fixed bottom-4 left-4 z-60 flex max-w-[calc(100vw-32px)] flex-col gap-2 max-desk:bottom-18">
      {now.map((one) => (
        <div key={one.id} className={cn('pointer-events-auto flex items-center gap-2 rounded-lg border bg-popover py-1.5 pr-1.5 pl-3 shadow-floating', one.bad && 'border-l-2 border-l-fail')}>
          <span className="min-w-0 break-words">{one.text}</span>
          {one.act && <Button size="sm" variant="ghost" className="text-brand" onClick={() => close(one.id, true)}>{one.act.label}</Button>}
          <IconButton label={w.act.close} onClick={() => close(one.id)}><X /></IconButton>
        </div>
      ))}
    </div>
  )
}
