// What an operation is about, in the terms of the timeline.
import type { Operation } from '@/lib/api'
import { countDiff } from '@/lib/diff'

export type Lane = 'command' | 'file' | 'terminal' | 'other'

export function lane(type: string): Lane {
  if (type.startsWith('command.')) return 'command'
  if (type.startsWith('file.')) return 'file'
  return type.startsWith('terminal.') ? 'terminal' : 'other'
}

const reads = new Set(['file.read', 'file.list', 'file.stat', 'file.glob', 'file.grep', 'file.download', 'history.read', 'history.read_output', 'history.search', 'history.export'])
export const isRead = (type: string) => reads.has(type)

export const isGap = (op: Operation) => op.type === 'history.gap' || op.type === 'recorder.restarted'

const bad = new Set(['failed', 'timeout', 'unknown', 'cancelled', 'denied', 'rejected'])
export const isRunning = (op: Operation) => op.status === 'started'
export const hasFailed = (op: Operation) => bad.has(op.status) && op.status !== 'cancelled'

// field reads a text out of what was asked or answered.
export function field(from: unknown, ...path: string[]): string | undefined {
  let at = from
  for (const name of path) {
    if (typeof at !== 'object' || at === null) return undefined
    at = Object.entries(at).find(([key]) => key === name)?.[1]
  }
  return typeof at === 'string' || typeof at === 'number' ? String(at) : undefined
}

export function subject(op: Operation): string {
  if (op.command) return op.command.line
  if (op.file) return op.file.old_path ? `${op.file.old_path} → ${op.file.path}` : op.file.path
  const host = field(op.request, 'host')
  if (host) return `${host}:${field(op.request, 'port') ?? ''}`
  for (const name of ['path', 'pattern', 'command', 'name', 'image']) {
    const text = field(op.request, name)
    if (text) return text
  }
  return ''
}

export function reason(op: Operation): string | undefined {
  return field(op.result, 'error', 'message') ?? field(op.result, 'reason') ?? field(op.result, 'message')
}

export function changed(op: Operation): { created: string[]; changed: string[]; deleted: string[] } {
  const names = (list?: { path: string }[] | null) => (list ?? []).map((one) => one.path)
  return { created: names(op.changes?.created), changed: names(op.changes?.changed), deleted: names(op.changes?.deleted) }
}

export function changes(op: Operation): number {
  const all = changed(op)
  return all.created.length + all.changed.length + all.deleted.length
}

export const lineCount = (op: Operation) => (op.file?.diff ? countDiff(op.file.diff) : { added: 0, removed: 0 })

export const actorOf = (op: Operation) => op.actor.id || op.actor.type || ''

// shell writes a command so that a shell runs it in the same folder.
export function shell(op: Operation): string {
  if (!op.command) return subject(op)
  return op.command.cwd ? `cd ${quote(op.command.cwd)} && ${op.command.line}` : op.command.line
}

const quote = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
