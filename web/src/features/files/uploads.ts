// Uploads go on while other files are looked at, a few at a time.
import { useSyncExternalStore } from 'react'
import { filesPath, isCode, listQuery, makeDirectory } from '@/features/files/contents'
import { type Name, base, join, nameOf, param, parent } from '@/features/files/names'
import { type Place, Problem, onSignedOut, prefix, query, unreachable } from '@/lib/api'
import type { QueryClient } from '@tanstack/react-query'

export type Picked = { file: File; path: string } // the path is below the target
export type Upload = { id: number; at: Place; name: Name; file: File; sent: number; replace: boolean; state: 'waiting' | 'sending' | 'done' | 'failed'; error?: unknown }

const together = 3
let list: readonly Upload[] = []
let last = 0
const running = new Map<number, XMLHttpRequest>()
const listeners = new Set<() => void>()
const set = (next: readonly Upload[]) => {
  list = next
  for (const changed of listeners) changed()
}
const put = (id: number, change: Partial<Upload>) => set(list.map((one) => (one.id === id ? { ...one, ...change } : one)))

export const useUploads = () => useSyncExternalStore((changed) => {
  listeners.add(changed)
  return () => listeners.delete(changed)
}, () => list)

// picked reads what was dropped, folders with all that is in them.
export async function picked(data: DataTransfer): Promise<{ files: Picked[]; folders: string[] }> {
  const items = [...data.items].filter((one) => one.kind === 'file').map((one) => one.webkitGetAsEntry() ?? one.getAsFile())
  const files: Picked[] = []
  const folders: string[] = []
  const walk = async (entry: FileSystemEntry, above: string): Promise<void> => {
    const path = above + entry.name
    if (isFile(entry)) {
      files.push({ path, file: await new Promise<File>((done, failed) => entry.file(done, failed)) })
    } else if (isFolder(entry)) {
      folders.push(path)
      const reader = entry.createReader()
      for (;;) {
        const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed))
        if (some.length === 0) break
        for (const one of some) await walk(one, `${path}/`)
      }
    }
  }
  for (const one of items) {
    if (one instanceof File) files.push({ file: one, path: one.name })
    else if (one) await walk(one, '')
  }
  return { files, folders }
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile
const isFolder = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory

export const chosen = (files: FileList): Picked[] => [...files].map((file) => ({ file, path: file.webkitRelativePath || file.name }))

const target = (directory: Name, path: string): Name => path.split('/').reduce((at, part) => join(at, part), directory)

// taken finds which of them are there already.
export async function taken(client: QueryClient, at: Place, directory: Name, files: Picked[]): Promise<Set<string>> {
  const there = new Map<Name, Set<Name>>()
  const out = new Set<string>()
  for (const one of files) {
    const name = target(directory, one.path)
    const above = parent(name)
    let names = there.get(above)
    if (!names) {
      // What is not listed in a folder that was listed is not there, and need not be asked for.
      const missing = above !== directory && there.get(parent(above))?.has(above) === false
      names = missing ? new Set() : await client.fetchQuery({ ...listQuery(at, above), staleTime: 0 }).then((found) => new Set(found.entries.map(nameOf)), () => new Set<Name>())
      there.set(above, names)
    }
    if (names.has(name)) out.add(one.path)
  }
  return out
}

type Begin = { client: QueryClient; at: Place; directory: Name; files: Picked[]; folders?: string[]; replace: ReadonlySet<string> }

// begin makes the folders, and then sends file by file.
export async function begin({ client, at, directory, files, folders = [], replace }: Begin) {
  const needed = new Set([...folders, ...files.map((one) => one.path.split('/').slice(0, -1).join('/')).filter(Boolean)])
  for (const one of needed) await makeDirectory(at, target(directory, one))
  set([...list.filter((one) => one.state === 'waiting' || one.state === 'sending'), ...files.map((one): Upload => ({ id: ++last, at, name: target(directory, one.path), file: one.file, sent: 0, replace: replace.has(one.path), state: 'waiting' }))])
  next(client)
}

function next(client: QueryClient) {
  while (running.size < together) {
    const one = list.find((other) => other.state === 'waiting')
    if (!one) return
    put(one.id, { state: 'sending' })
    void send(one).then(
      () => put(one.id, { state: 'done', sent: one.file.size }),
      (error: unknown) => put(one.id, { state: 'failed', error }),
    ).finally(() => {
      running.delete(one.id)
      void client.invalidateQueries({ queryKey: ['files', one.at.connection, one.at.sandbox, 'list', parent(one.name)] })
      next(client)
    })
  }
}

// send streams a file from the disk: fetch would tell no progress.
function send(one: Upload): Promise<void> {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest()
    running.set(one.id, request)
    request.open('PUT', `${prefix}${filesPath(one.at)}/content${query(param(one.name))}`)
    request.setRequestHeader('Content-Type', 'application/octet-stream')
    if (!one.replace) request.setRequestHeader('If-None-Match', '*')
    request.upload.onprogress = (event) => put(one.id, { sent: event.loaded })
    request.onload = () => {
      if (request.status < 300) return done()
      if (request.status === 401) for (const tell of onSignedOut) tell()
      failed(problem(request))
    }
    request.onerror = () => failed(new Problem(0, { code: unreachable }))
    request.onabort = () => failed(new Problem(0, { code: 'cancelled' }))
    request.send(one.file)
  })
}

function problem(request: XMLHttpRequest): Problem {
  try {
    return new Problem(request.status, JSON.parse(request.responseText))
  } catch {
    return new Problem(request.status, {})
  }
}

export function cancelUploads() {
  set(list.filter((one) => one.state !== 'waiting'))
  for (const request of running.values()) request.abort()
}

export const closeUploads = () => set(list.filter((one) => one.state === 'waiting' || one.state === 'sending'))

// again tries what failed, over what is there if that is wanted.
export function again(client: QueryClient, id: number, replace: boolean) {
  put(id, { state: 'waiting', error: undefined, sent: 0, replace })
  next(client)
}

export const wasThere = (one: Upload) => isCode(one.error, 'concurrent_modification', 'file_exists')
export const wasCancelled = (one: Upload) => isCode(one.error, 'cancelled')
export const uploadName = (one: Upload) => base(one.name)
