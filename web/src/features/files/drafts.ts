// What was typed and not yet saved outlives a reload, a sign-out and a crash:
// this browser keeps it, for each user apart, until it is saved or dropped.
import type { Form } from '@/features/files/text'

// A Draft has what it was made of, so that it can be merged with what came after.
export type Draft = { key: string; text: string; base: string; hash: string | null; form: Form; asRead: Form; ends: string[]; baseEnds: string[]; at: number }

const store = 'drafts'
const days = 30
let opening: Promise<IDBDatabase> | undefined

function open(): Promise<IDBDatabase> {
  return (opening ??= new Promise((done, failed) => {
    const asked = indexedDB.open('glassbox.drafts', 1)
    asked.onupgradeneeded = () => asked.result.createObjectStore(store, { keyPath: 'key' })
    asked.onsuccess = () => done(asked.result)
    asked.onerror = () => failed(asked.error)
  }))
}

async function act<T>(mode: IDBTransactionMode, run: (at: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const database = await open()
  return new Promise((done, failed) => {
    const work = database.transaction(store, mode)
    const asked = run(work.objectStore(store))
    work.oncomplete = () => done(asked.result)
    work.onerror = () => failed(work.error)
    work.onabort = () => failed(work.error)
  })
}

export const keepDraft = (draft: Draft) => act('readwrite', (at) => at.put(draft))
export const dropDraft = (key: string) => act('readwrite', (at) => at.delete(key))

export async function findDraft(key: string): Promise<Draft | undefined> {
  const found: Draft | undefined = await act('readonly', (at) => at.get(key)).catch(() => undefined)
  if (!found || found.at > Date.now() - days * 86_400_000) return found
  await dropDraft(key)
  return undefined
}

// draftKeys are the drafts of a place, by their names.
export async function draftKeys(prefix: string): Promise<string[]> {
  const keys: IDBValidKey[] = await act('readonly', (at) => at.getAllKeys(IDBKeyRange.bound(prefix, `${prefix}\uffff`))).catch(() => [])
  return keys.filter((one) => typeof one === 'string')
}
