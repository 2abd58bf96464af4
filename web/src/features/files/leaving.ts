// What is being deleted is out of sight at once, and goes after ten seconds in
// which it can be taken back. What another has changed in that time stays.
import { useSyncExternalStore } from 'react'
import type { QueryClient } from '@tanstack/react-query'
import { toast } from '@/components/ui/toast'
import { type Entry, type Usage, filesPath, isCode, listKey, remove, stat, usage } from '@/features/files/contents'
import type { Desk } from '@/features/files/desk'
import { type Name, base, param, parent, within } from '@/features/files/names'
import { type Place, prefix, query } from '@/lib/api'
import { line } from '@/lib/safe'
import type { useWords } from '@/lib/words'

export type Item = { name: Name; entry: Entry }

const stay = 10_000
const none: ReadonlySet<Name> = new Set()
const leaving = new Map<string, ReadonlySet<Name>>()
const listeners = new Set<() => void>()
const waiting = new Set<() => void>() // ends each wait at once
const keyOf = (at: Place) => `${at.connection}/${at.sandbox}`

function mark(at: Place, change: (names: Set<Name>) => void) {
  const next = new Set(leaving.get(keyOf(at)))
  change(next)
  leaving.set(keyOf(at), next)
  for (const changed of listeners) changed()
}

export const useLeaving = (at: Place) => useSyncExternalStore((changed) => {
  listeners.add(changed)
  return () => listeners.delete(changed)
}, () => leaving.get(keyOf(at)) ?? none)

// settle ends what waits, before something else is done with files.
export function settle() {
  for (const end of [...waiting]) end()
}

type Leave = { at: Place; desk: Desk; client: QueryClient; items: Item[]; counted: Map<Name, Usage>; w: ReturnType<typeof useWords> }

// leave deletes, unless that is taken back.
export function leave(given: Leave) {
  const { at, items, w } = given
  const names = items.map((one) => one.name)
  mark(at, (all) => names.forEach((name) => all.add(name)))
  const back = () => mark(at, (all) => names.forEach((name) => all.delete(name)))
  const flush = () => {
    for (const { name, entry } of items) void fetch(`${prefix}${filesPath(at)}${query({ ...param(name), recursive: entry.type === 'directory' ? 'true' : undefined })}`, { method: 'DELETE', keepalive: true, credentials: 'same-origin' }) // the page goes
  }
  const [first] = names
  const said = names.length === 1 && first ? w.files.deleted(line(base(first))) : w.files.deletedMany(names.length)
  const over = () => removeEventListener('pagehide', flush)
  const end = toast(said, false, {
    label: w.files.undo, ms: stay,
    run: () => {
      waiting.delete(end)
      over()
      back()
    },
    onEnd: () => {
      waiting.delete(end)
      void Promise.all(items.map((one) => go(given, one))).then(back).finally(over)
    },
  })
  waiting.add(end)
  addEventListener('pagehide', flush)
}

async function go({ at, desk, client, counted, w }: Leave, { name, entry }: Item) {
  try {
    if (!(await same(at, name, entry, counted.get(name)))) toast(w.files.changedNotDeleted(line(base(name))), true)
    else await remove(at, name, entry.type === 'directory')
  } catch (error) {
    if (!isCode(error, 'file_not_found')) toast(`${w.files.notDeleted(line(base(name)))} ${error instanceof Error ? line(error.message) : ''}`, true)
  }
  for (const doc of desk.list()) {
    if (!within(doc.name, name)) continue
    if (doc.dirty) desk.changed((one) => one === doc.name)
    else desk.close(doc.name)
  }
  await client.invalidateQueries({ queryKey: listKey(at, parent(name)) })
}

async function same(at: Place, name: Name, seen: Entry, before?: Usage): Promise<boolean> {
  const now = await stat(at, name)
  if (now.type !== seen.type) return false
  if (now.type !== 'directory') return now.size === seen.size && now.modified_at === seen.modified_at
  if (!before) return true
  const all = await usage(at, name)
  return all.bytes === before.bytes && all.files === before.files && all.directories === before.directories
}
