// The streams of events. One EventSource each; the browser comes back by itself
// after a loss, with the id that it read last.
import { useEffect, useEffectEvent, useState } from 'react'
import { prefix } from '@/lib/api'

export type LiveState = 'off' | 'connecting' | 'live' | 'ended'

type Handlers<T> = { onEvents: (events: T[]) => void; onReset: () => void }

const gather = 200 // ms: what comes in that time is shown at once

export function useLive<T>(path: string | undefined, { onEvents, onReset }: Handlers<T>): LiveState {
  const [state, setState] = useState<LiveState>('off')
  const tell = useEffectEvent(onEvents)
  const reset = useEffectEvent(onReset)
  useEffect(() => {
    if (!path) return
    let waiting: T[] = []
    let timer: ReturnType<typeof setTimeout> | undefined
    let again: ReturnType<typeof setTimeout> | undefined
    let source: EventSource
    let lost = false
    const flush = () => {
      timer = undefined
      const events = waiting
      waiting = []
      tell(events)
    }
    const open = () => {
      setState('connecting')
      source = new EventSource(prefix + path)
      source.onopen = () => {
        setState('live')
        if (lost) reset() // opened anew, without the place in the feed
        lost = false
      }
      source.onerror = () => {
        setState('connecting')
        if (source.readyState !== EventSource.CLOSED) return // it comes back by itself
        lost = true
        again = setTimeout(open, 3000)
      }
      source.addEventListener('operation', (event) => {
        waiting.push(JSON.parse(event.data))
        timer ??= setTimeout(flush, gather)
      })
      source.addEventListener('reset', () => reset())
      source.addEventListener('end', () => {
        source.close()
        setState('ended')
      })
    }
    open()
    return () => {
      source.close()
      clearTimeout(timer)
      clearTimeout(again)
      setState('off')
    }
  }, [path])
  return state
}
