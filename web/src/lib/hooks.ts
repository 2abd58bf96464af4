import { useEffect, useEffectEvent, useRef, useState, useSyncExternalStore } from 'react'

// useNow ticks, so that ages grow by themselves.
export function useNow(every = 1000): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every)
    return () => clearInterval(timer)
  }, [every])
  return now
}

export function useMedia(query: string): boolean {
  return useSyncExternalStore((changed) => {
    const list = matchMedia(query)
    list.addEventListener('change', changed)
    return () => list.removeEventListener('change', changed)
  }, () => matchMedia(query).matches)
}

export const usePhone = () => useMedia('(max-width: 999px)')

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest('[role=menu], [role=textbox], .xterm') !== null)

// useKeys calls what a key stands for, unless somebody types or a dialog is open.
export function useKeys(keys: Record<string, (() => void) | undefined>, on = true) {
  const pressed = useEffectEvent((event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || typing(event.target) || document.querySelector('[role=dialog], [role=menu]')) return
    const run = keys[event.key]
    if (!run) return
    if ((event.key === 'Enter' || event.key === ' ') && event.target instanceof HTMLElement && event.target.closest('a, button')) return
    event.preventDefault()
    run()
  })
  useEffect(() => {
    if (!on) return
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [on])
}

// useLater gives a value once it has stood still.
export function useLater<T>(value: T, ms: number): T {
  const [later, setLater] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), ms)
    return () => clearTimeout(timer)
  }, [value, ms])
  return later
}

// useWidth is how wide an element is.
export function useWidth() {
  const ref = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const at = ref.current
    if (!at) return
    const watch = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0))
    watch.observe(at)
    return () => watch.disconnect()
  }, [])
  return { ref, width }
}
