import { X } from 'lucide-react'
import { useSyncExternalStore } from 'react'
import { IconButton } from '@/components/ui/button'
import { cn } from '@/lib/cn'
import { useWords } from '@/lib/words'

type Toast = { id: number; text: string; bad: boolean }

let list: Toast[] = []
let last = 0
const listeners = new Set<() => void>()
const set = (next: Toast[]) => {
  list = next
  for (const changed of listeners) changed()
}
const close = (id: number) => set(list.filter((one) => one.id !== id))

// toast says one line; what went wrong stays until it is closed.
export function toast(text: string, bad = false) {
  const id = ++last
  set([...list, { id, text, bad }].slice(-3))
  if (!bad) setTimeout(() => close(id), 5000)
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
          <IconButton label={w.act.close} onClick={() => close(one.id)}><X /></IconButton>
        </div>
      ))}
    </div>
  )
}
