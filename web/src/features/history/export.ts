// Writes what a filter shows as a file, page by page.
import type { HistorySearch } from '@/features/history/filter'
import { type Row, readRows } from '@/features/history/rows'
import type { Place } from '@/lib/api'
import { actorOf, subject } from '@/lib/operation'

export type Format = 'json' | 'jsonl' | 'csv'

// cell keeps a spreadsheet from taking a text for a formula.
export function cell(value: unknown): string {
  let text = value === undefined || value === null ? '' : String(value)
  if (typeof value === 'string' && /^[=+\-@\t\r]/.test(text)) text = `'${text}`
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const columns = ['connection', 'sandbox', 'id', 'type', 'status', 'source', 'actor', 'thread', 'run', 'started_at', 'completed_at', 'duration_ms', 'subject', 'cwd', 'exit_code'] as const

function csv({ op, at }: Row): string {
  const values: Record<(typeof columns)[number], unknown> = {
    connection: at.connection, sandbox: at.sandbox, id: op.id, type: op.type, status: op.status, source: op.source, actor: actorOf(op), thread: op.actor.thread_id, run: op.actor.run_id, started_at: op.started_at,
    completed_at: op.completed_at, duration_ms: op.duration_ms, subject: subject(op), cwd: op.command?.cwd, exit_code: op.command?.exit_code,
  }
  return columns.map((name) => cell(values[name])).join(',')
}

const told = ({ op, at }: Row) => ({ connection: at.connection, sandbox: at.sandbox, ...op })

export async function exportRows(scope: Place | undefined, search: HistorySearch, format: Format, keep: (row: Row) => boolean, told_: (n: number) => void, signal: AbortSignal): Promise<{ file: Blob; n: number }> {
  const parts: string[] = []
  let n = 0
  let cursor: string | undefined = ''
  if (format === 'csv') parts.push(`\ufeff${columns.join(',')}\r\n`)
  while (cursor !== undefined) {
    const page: Awaited<ReturnType<typeof readRows>> = await readRows(scope, search, cursor, signal)
    const rows = page.rows.filter(keep)
    if (format === 'csv') parts.push(...rows.map((row) => `${csv(row)}\r\n`))
    else if (format === 'jsonl') parts.push(...rows.map((row) => `${JSON.stringify(told(row))}\n`))
    else parts.push(...rows.map((row, i) => `${n + i === 0 ? '[\n' : ',\n'}${JSON.stringify(told(row))}`))
    n += rows.length
    told_(n)
    cursor = page.next
  }
  if (format === 'json') parts.push(n === 0 ? '[]\n' : '\n]\n')
  return { file: new Blob(parts, { type: 'application/octet-stream' }), n }
}

export function saveAs(file: Blob, name: string) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
