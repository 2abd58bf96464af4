// What a file turns out to be when it is opened.
import { type Entry, isCode, readPart, readWhole, stat } from '@/features/files/contents'
import { type Name, path } from '@/features/files/names'
import { type Text, decode, isBinary } from '@/features/files/text'
import type { Place } from '@/lib/api'

export const largest = 5_000_000 // bytes that are edited as a whole
export const pieceSize = 1 << 20
const largestImage = 25_000_000

export type Opened = { entry: Entry } & (
  | { kind: 'text'; text: Text; hash: string; size: number }
  | { kind: 'large'; text: Text; bytes: Uint8Array; size?: number }
  | { kind: 'image'; bytes: Uint8Array; size: number }
  | { kind: 'bytes'; size?: number }
  | { kind: 'special'; error?: unknown }
  | { kind: 'directory' }
)
export type Kind = Opened['kind']

const images: Record<string, string> = { png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp', avif: 'image/avif', bmp: 'image/bmp', ico: 'image/x-icon', svg: 'image/svg+xml' }
export const imageType = (name: Name) => images[path(name).toLowerCase().split('.').at(-1) ?? '']
export const isMarkdown = (name: Name) => /\.(md|markdown)$/i.test(path(name))

export async function openFile(at: Place, name: Name, signal?: AbortSignal): Promise<Opened> {
  const entry = await stat(at, name, signal)
  if (entry.type === 'directory') return { entry, kind: 'directory' }
  if (entry.type !== 'file' && entry.type !== 'link') return { entry, kind: 'special' }
  try {
    return await openRegular(at, name, entry, signal)
  } catch (error) {
    if (isCode(error, 'is_directory')) return { entry, kind: 'directory' }
    if (isCode(error, 'path_not_allowed')) return { entry, kind: 'special', error }
    throw error
  }
}

// What a link leads to, and what the kernel makes up, tells no size before it is read.
async function openRegular(at: Place, name: Name, entry: Entry, signal?: AbortSignal): Promise<Opened> {
  if (entry.type === 'file' && entry.size > largest) return openLarge(at, name, entry, entry.size, signal)
  if (entry.type === 'link' || entry.size === 0) {
    const first = await readPart(at, name, 0, largest + 1, signal)
    if (first.bytes.length > largest) return openLarge(at, name, entry, first.size, signal)
  }
  const { bytes, hash } = await readWhole(at, name, signal)
  if (imageType(name) && imageType(name) !== images.svg) return { entry, kind: 'image', bytes, size: bytes.length }
  const text = isBinary(bytes) ? undefined : decode(bytes)
  return text ? { entry, kind: 'text', text, hash, size: bytes.length } : { entry, kind: 'bytes', size: bytes.length }
}

async function openLarge(at: Place, name: Name, entry: Entry, size: number | undefined, signal?: AbortSignal): Promise<Opened> {
  if (imageType(name) && size !== undefined && size <= largestImage) return { entry, kind: 'image', bytes: (await readPart(at, name, 0, size, signal)).bytes, size }
  const first = await readPart(at, name, 0, pieceSize, signal)
  const text = isBinary(first.bytes) ? undefined : decode(first.bytes, undefined, true)
  return text ? { entry, kind: 'large', text, bytes: first.bytes, size: first.size ?? size } : { entry, kind: 'bytes', size: first.size ?? size }
}
