// What is asked of the server about files.
import { queryOptions } from '@tanstack/react-query'
import type { components } from '@/gen/api'
import { type Place, Problem, ask, prefix, query, read, sandboxPath, send } from '@/lib/api'
import { type Name, natural, param } from '@/features/files/names'

type Schemas = components['schemas']
export type Entry = Schemas['FileEntry']
export type Written = Schemas['Written']
export type Found = Schemas['Found']
export type Usage = Schemas['Usage']

export const filesPath = (at: Place) => `${sandboxPath(at)}/files`
export const filesKey = (at: Place) => ['files', at.connection, at.sandbox]
export const listKey = (at: Place, name: Name) => [...filesKey(at), 'list', name]

export const isCode = (error: unknown, ...codes: string[]) => error instanceof Problem && codes.includes(error.code)

// Every list is an act in the history, so it is asked for again only when
// something is known to have changed.
export const listQuery = (at: Place, name: Name) => queryOptions({
  queryKey: listKey(at, name), staleTime: 60_000, retry: false, refetchOnWindowFocus: false, gcTime: 10 * 60_000,
  queryFn: async ({ signal }) => {
    const list = await read<Schemas['FileList']>(`${filesPath(at)}${query({ ...param(name), limit: 100_000 })}`, signal)
    return { ...list, entries: sorted(list.entries) }
  },
})

// Directories come first, and links with what they are.
function sorted(list: Entry[]): Entry[] {
  const rank = (one: Entry) => (one.type === 'directory' ? 0 : 1)
  return list.sort((a, b) => rank(a) - rank(b) || natural(a.name, b.name))
}

export const rootQuery = (at: Place) => queryOptions({
  queryKey: [...filesKey(at), 'root'], staleTime: Infinity, retry: false, queryFn: ({ signal }) => read<Entry>(`${filesPath(at)}/stat?path=.`, signal),
})

export const stat = (at: Place, name: Name, signal?: AbortSignal) => read<Entry>(`${filesPath(at)}/stat${query(param(name))}`, signal)

type Search = { name?: string; content?: string; regexp?: string; ignore_case?: string; hidden?: string; limit: number }
export const searchFiles = (at: Place, directory: Name, what: Search, signal?: AbortSignal) => read<Found>(`${filesPath(at)}/search${query({ ...param(directory), ...what })}`, signal)

export const usage = (at: Place, name: Name, signal?: AbortSignal) => read<Usage>(`${filesPath(at)}/usage${query(param(name))}`, signal)

export const contentLink = (at: Place, name: Name) => `${prefix}${filesPath(at)}/content${query(param(name))}`
export const archiveLink = (at: Place, name: Name, only: Name[] = []) => {
  const text = only.map(param).filter((one) => 'path' in one).map((one) => one.path ?? '')
  const raw = only.map(param).flatMap((one) => ('path_base64' in one ? [one.path_base64 ?? ''] : []))
  return `${prefix}${filesPath(at)}/archive${query({ ...param(name), format: 'zip', only: text, only_base64: raw })}`
}

export type Piece = { bytes: Uint8Array; size?: number }

// readPart reads some bytes of a file, and never more: a file of the kernel
// has no size, and may have no end.
export async function readPart(at: Place, name: Name, from: number, length: number, signal?: AbortSignal): Promise<Piece> {
  const answer = await ask(`${filesPath(at)}/content${query(param(name))}`, { headers: { Range: `bytes=${from}-${from + length - 1}` }, signal })
  const told = /\/(\d+)$/.exec(answer.headers.get('Content-Range') ?? '')?.[1]
  const reader = answer.body?.getReader()
  const parts: Uint8Array[] = []
  let n = 0
  while (reader && n < length) {
    const { done, value } = await reader.read()
    if (done) break
    parts.push(value)
    n += value.length
  }
  await reader?.cancel()
  const bytes = new Uint8Array(Math.min(n, length))
  let at0 = 0
  for (const part of parts) {
    const fits = part.subarray(0, bytes.length - at0)
    bytes.set(fits, at0)
    at0 += fits.length
  }
  return { bytes, size: told === undefined ? undefined : Number(told) }
}

export type Whole = { bytes: Uint8Array; hash: string }

// readWhole reads a file of a few megabytes, with its hash.
export async function readWhole(at: Place, name: Name, signal?: AbortSignal): Promise<Whole> {
  const answer = await ask(`${filesPath(at)}/content${query({ ...param(name), etag: 'sha256' })}`, { signal, cache: 'no-store' })
  return { bytes: new Uint8Array(await answer.arrayBuffer()), hash: (answer.headers.get('ETag') ?? '').replaceAll('"', '') }
}

// write replaces a file if it still is what hash says; null: if there is none.
export async function write(at: Place, name: Name, bytes: Uint8Array<ArrayBuffer> | Uint8Array, hash: string | null | undefined): Promise<Written> {
  const headers: Record<string, string> = { 'Content-Type': 'application/octet-stream' }
  if (hash === null) headers['If-None-Match'] = '*'
  else if (hash) headers['If-Match'] = `"${hash}"`
  const answer = await ask(`${filesPath(at)}/content${query(param(name))}`, { method: 'PUT', headers, body: new Blob([new Uint8Array(bytes)]) })
  return answer.json()
}

const ends = (from: Name, to: Name) => {
  const a = param(from)
  const b = param(to)
  return { from: a.path, from_base64: a.path_base64, to: b.path, to_base64: b.path_base64 }
}

export const makeDirectory = (at: Place, name: Name) => send<Entry>('POST', `${filesPath(at)}/directories`, param(name))
export const move = (at: Place, from: Name, to: Name, replace = false) => send<Entry>('POST', `${filesPath(at)}/move`, { ...ends(from, to), replace })
export const copy = (at: Place, from: Name, to: Name) => send<Entry>('POST', `${filesPath(at)}/copy`, ends(from, to))
export const setMode = (at: Place, name: Name, mode: string, recursive: boolean) => send<Entry>('POST', `${filesPath(at)}/mode`, { ...param(name), mode, recursive })
export const remove = (at: Place, name: Name, recursive: boolean) => send('DELETE', `${filesPath(at)}${query({ ...param(name), recursive: recursive ? 'true' : undefined })}`)
