// The tree as rows: what is unfolded, in order.
import { useQueries } from '@tanstack/react-query'
import { useMemo, useSyncExternalStore } from 'react'
import { type Entry, listQuery } from '@/features/files/contents'
import { type Name, nameOf } from '@/features/files/names'
import type { Place } from '@/lib/api'

export type TreeRow = { key: string; depth: number } & (
  | { kind: 'entry'; name: Name; entry: Entry; open: boolean; in: Name }
  | { kind: 'waiting'; in: Name }
  | { kind: 'empty'; in: Name }
  | { kind: 'failed'; in: Name; error: Error }
)

// What is unfolded outlives the tab, for each sandbox.
const unfolded = new Map<string, ReadonlySet<Name>>()
const listeners = new Set<() => void>()
const none: ReadonlySet<Name> = new Set()
const keyOf = (at: Place) => `glassbox.tree ${at.connection}/${at.sandbox}`

function load(key: string): ReadonlySet<Name> {
  try {
    const told: unknown = JSON.parse(sessionStorage.getItem(key) ?? '[]')
    return new Set(Array.isArray(told) ? told.filter((one) => typeof one === 'string') : [])
  } catch {
    return none
  }
}

export function useUnfolded(at: Place) {
  const key = keyOf(at)
  const get = () => {
    const known = unfolded.get(key)
    if (known) return known
    const read = load(key)
    unfolded.set(key, read)
    return read
  }
  const open = useSyncExternalStore((changed) => {
    listeners.add(changed)
    return () => listeners.delete(changed)
  }, get)
  const set = (next: ReadonlySet<Name>) => {
    unfolded.set(key, next)
    try {
      sessionStorage.setItem(key, JSON.stringify([...next]))
    } catch { /* then it lasts as long as the page */ }
    for (const changed of listeners) changed()
  }
  return {
    open,
    unfold: (...names: Name[]) => names.some((one) => !get().has(one)) && set(new Set([...get(), ...names])),
    fold: (name: Name) => set(new Set([...get()].filter((one) => one !== name))),
  }
}

export const mayUnfold = (entry: Entry) => entry.type === 'directory' || entry.type === 'link'

// useTree lists what is unfolded below the roots.
export function useTree(at: Place, roots: Entry[], open: ReadonlySet<Name>, leaving: ReadonlySet<Name>) {
  const wanted = [...open]
  const lists = useQueries({
    queries: wanted.map((name) => listQuery(at, name)),
    combine: (all) => ({ all, stamp: all.map((one) => `${one.dataUpdatedAt}${one.errorUpdatedAt}${one.isFetching && !one.data}`).join(' ') }),
  })
  const { stamp } = lists
  return useMemo(() => {
    const by = new Map(wanted.map((name, i) => [name, lists.all[i]]))
    const rows: TreeRow[] = []
    const walk = (entry: Entry, depth: number, inside: Name) => {
      const name = nameOf(entry)
      if (leaving.has(name)) return
      const list = mayUnfold(entry) && open.has(name) ? by.get(name) : undefined
      const noDirectory = entry.type === 'link' && list?.error
      rows.push({ kind: 'entry', key: name, depth, name, entry, open: Boolean(list) && !noDirectory, in: inside })
      if (!list || noDirectory) return
      const note = { depth: depth + 1, in: name }
      if (list.error && !list.data) rows.push({ kind: 'failed', key: `failed ${name}`, error: list.error, ...note })
      else if (!list.data) rows.push({ kind: 'waiting', key: `waiting ${name}`, ...note })
      else if (list.data.entries.length === 0) rows.push({ kind: 'empty', key: `empty ${name}`, ...note })
      else for (const one of list.data.entries) walk(one, depth + 1, name)
    }
    for (const root of roots) walk(root, 0, nameOf(root))
    return rows
  }, [roots, open, leaving, stamp]) // eslint-disable-line react-hooks/exhaustive-deps -- stamp tells when a list is another
}
