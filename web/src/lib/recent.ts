// The sandboxes that were opened last, newest first.
import { useSyncExternalStore } from 'react'
import type { Place } from '@/lib/api'

export type Recent = Place & { name: string }
const key = 'glassbox.recent'
const listeners = new Set<() => void>()

function load(): Recent[] {
  try {
    const list: unknown = JSON.parse(localStorage.getItem(key) ?? '[]')
    return Array.isArray(list) ? list.filter((one) => typeof one?.sandbox === 'string' && typeof one?.connection === 'string' && typeof one?.name === 'string') : []
  } catch {
    return []
  }
}

let list = load()

export function visited(box: Recent) {
  const first = list[0]
  if (first?.sandbox === box.sandbox && first.connection === box.connection && first.name === box.name) return
  list = [box, ...list.filter((one) => one.sandbox !== box.sandbox || one.connection !== box.connection)].slice(0, 5)
  try {
    localStorage.setItem(key, JSON.stringify(list))
  } catch { /* then they last as long as this page */ }
  for (const changed of listeners) changed()
}

export const useRecent = () => useSyncExternalStore((changed) => {
  listeners.add(changed)
  return () => listeners.delete(changed)
}, () => list)
