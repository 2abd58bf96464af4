// A choice that this browser keeps.
export type Kept<T> = { get: () => T | undefined; set: (value: T) => void; subscribe: (changed: () => void) => () => void }

export function kept<T extends string>(name: string, parse: (text: string | null) => T | undefined): Kept<T> {
  const listeners = new Set<() => void>()
  let now: T | undefined
  try {
    now = parse(localStorage.getItem(name))
  } catch {
    now = undefined // this browser keeps nothing
  }
  return {
    get: () => now,
    set: (value) => {
      now = value
      try {
        localStorage.setItem(name, value)
      } catch { /* then it holds for this page */ }
      for (const changed of listeners) changed()
    },
    subscribe: (changed) => {
      listeners.add(changed)
      return () => listeners.delete(changed)
    },
  }
}
