// Names of files. A name is an absolute path; one that is no UTF-8 is its
// bytes in base64, so that it is asked for as it is.
export type Name = string

const mark = 'base64:'
const slash = 0x2f

export const nameOf = (entry: { path: string; path_base64?: string }): Name => (entry.path_base64 ? mark + entry.path_base64 : entry.path)

// param is how the server is asked for a name.
export const param = (name: Name) => (name.startsWith(mark) ? { path_base64: name.slice(mark.length) } : { path: name })

// isName tells whether an address names a file.
export const isName = (text: unknown): text is Name => typeof text === 'string' && (text.startsWith('/') || (text.startsWith(mark) && bytesOf(text)[0] === slash))

function bytesOf(name: Name): Uint8Array {
  if (!name.startsWith(mark)) return new TextEncoder().encode(name)
  try {
    return Uint8Array.from(atob(name.slice(mark.length)), (one) => one.charCodeAt(0))
  } catch {
    return new Uint8Array()
  }
}

function ofBytes(bytes: Uint8Array): Name {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return mark + btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join(''))
  }
}

// path is a name to be shown.
export const path = (name: Name) => (name.startsWith(mark) ? new TextDecoder().decode(bytesOf(name)) : name)

export const base = (name: Name) => (name === '/' ? '/' : path(name).slice(path(name).lastIndexOf('/') + 1))

export function parent(name: Name): Name {
  const bytes = bytesOf(name)
  return ofBytes(bytes.subarray(0, Math.max(1, bytes.lastIndexOf(slash))))
}

// join names what is in a directory.
export function join(directory: Name, inside: Name): Name {
  const above = bytesOf(directory === '/' ? '' : directory)
  const below = bytesOf(inside)
  const bytes = new Uint8Array(above.length + 1 + below.length)
  bytes.set(above)
  bytes[above.length] = slash
  bytes.set(below, above.length + 1)
  return ofBytes(bytes)
}

// last is the last part of a name, as a name that join takes.
export function last(name: Name): Name {
  const bytes = bytesOf(name)
  return ofBytes(bytes.subarray(bytes.lastIndexOf(slash) + 1))
}

// within tells whether a name is a directory's, or below it.
export function within(name: Name, directory: Name): boolean {
  if (name === directory || directory === '/') return true
  const all = bytesOf(name)
  const above = bytesOf(directory)
  return all[above.length] === slash && above.every((one, i) => one === all[i])
}

// moved is what a name becomes when what it is below goes elsewhere.
export function moved(name: Name, from: Name, to: Name): Name {
  if (!within(name, from)) return name
  if (name === from) return to
  return join(to, ofBytes(bytesOf(name).subarray(bytesOf(from).length + 1)))
}

// above are the directories that lead to a name, the first of them root.
export function above(name: Name, root: Name = '/'): Name[] {
  const list: Name[] = []
  for (let at = name; at !== root && at !== '/'; ) list.unshift(at = parent(at))
  return list
}

const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' })

// natural sorts f2 before f10.
export const natural = (a: string, b: string) => collator.compare(a, b) || (a < b ? -1 : a > b ? 1 : 0)

// wrongName tells why a name cannot be given to a file.
export function wrongName(text: string): 'empty' | 'slash' | 'dots' | 'long' | undefined {
  if (text === '') return 'empty'
  if (/[/\0]/.test(text)) return 'slash'
  if (text === '.' || text === '..') return 'dots'
  return new TextEncoder().encode(text).length > 255 ? 'long' : undefined
}
