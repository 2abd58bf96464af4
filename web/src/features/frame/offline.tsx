import { useQueryClient } from '@tanstack/react-query'
import { WifiOff } from 'lucide-react'
import { useSyncExternalStore } from 'react'
import { Button } from '@/components/ui/button'
import { Problem, unreachable } from '@/lib/api'
import { clock } from '@/lib/format'
import { useWords } from '@/lib/words'

// Offline says that the server is not reached, and since when: as soon as one
// question has no answer, until one has again.
export function Offline() {
  const w = useWords()
  const client = useQueryClient()
  const since = useSyncExternalStore((changed) => client.getQueryCache().subscribe(changed), () => {
    let lost = 0
    let answered = 0
    for (const query of client.getQueryCache().getAll()) {
      answered = Math.max(answered, query.state.dataUpdatedAt)
      const error = query.state.error ?? query.state.fetchFailureReason
      if (error instanceof Problem && error.code === unreachable && query.isActive()) lost = Math.max(lost, query.state.errorUpdatedAt, query.state.dataUpdatedAt + 1, 1)
    }
    return lost >= answered && lost > 0 ? answered || lost : 0
  })
  if (!since) return null
  return (
    <div role="status" className="flex items-center gap-2 bg-warn-soft px-5 py-1.5 text-warn">
      <WifiOff className="size-4 shrink-0" aria-hidden />
      <span className="min-w-0 flex-1">{w.live.offline(clock(new Date(since)))}</span>
      <Button size="sm" onClick={() => client.refetchQueries({ type: 'active' })}>{w.act.retry}</Button>
    </div>
  )
}
