import { useQuery } from '@tanstack/react-query'
import {
  ArrowRightLeft, Bot, ChevronDown, ChevronRight, CircleUser, FilePen, FilePlus2, FileText, Folder, Globe, type LucideIcon, Monitor, Power, Search, Terminal, Trash2, TriangleAlert, Upload,
} from 'lucide-react'
import { createElement, memo } from 'react'
import { Lines } from '@/components/diff'
import { StatusGlyph } from '@/components/glyph'
import { Text, Took } from '@/components/text'
import { Tag } from '@/components/ui/tag'
import { MiniStrip } from '@/features/history/strip'
import type { Group, Row } from '@/features/history/rows'
import type { Total } from '@/features/history/summary'
import { plainText } from '@/lib/ansi'
import type { Operation } from '@/lib/api'
import { cn } from '@/lib/cn'
import { clock, count, moment, shortRun, size, span } from '@/lib/format'
import { actorOf, changes, hasFailed, isRunning, lineCount, reason, subject } from '@/lib/operation'
import { readOutput } from '@/lib/queries'
import { line } from '@/lib/safe'
import { label, useLang, useWords } from '@/lib/words'

const icons: Record<string, LucideIcon> = {
  'command.execute': Terminal, 'file.write': FilePlus2, 'file.edit': FilePen, 'file.append': FilePen, 'file.delete': Trash2, 'file.move': ArrowRightLeft, 'file.upload': Upload, 'file.list': Folder, 'file.mkdir': Folder,
  'file.glob': Search, 'file.grep': Search, 'terminal.session': Monitor, 'network.connect': Globe, 'history.gap': TriangleAlert, 'recorder.restarted': TriangleAlert,
}

export function TypeIcon({ type }: { type: string }) {
  return createElement(icons[type] ?? (type.startsWith('sandbox.') ? Power : FileText), { 'aria-hidden': true, className: 'size-3.5 shrink-0 text-muted-foreground', strokeWidth: 1.6 })
}

// hasPeek: a command that failed says its last words without being asked.
export const hasPeek = (op: Operation) => Boolean(op.command && (op.status === 'failed' || op.status === 'timeout') && op.command.stderr_kept_bytes + op.command.stdout_kept_bytes > 0)

const peekBytes = 512

export function Peek({ row }: { row: Row }) {
  const { op, at } = row
  const stream = op.command?.stderr_kept_bytes ? 'stderr' : 'stdout'
  const end = (stream === 'stderr' ? op.command?.stderr_kept_bytes : op.command?.stdout_kept_bytes) ?? 0
  const { data } = useQuery({
    queryKey: ['peek', at.connection, at.sandbox, op.id], staleTime: Infinity, retry: false,
    queryFn: async ({ signal }) => new TextDecoder().decode(await readOutput(at, op.id, stream, Math.max(0, end - peekBytes), end, signal)),
  })
  const last = data && plainText(data).trimEnd().split('\n').at(-1)?.trim()
  return <p className="h-5 truncate font-mono text-sm text-fail">{last && <bdi>{last}</bdi>}</p>
}

function Outcome({ op }: { op: Operation }) {
  const w = useWords()
  const lang = useLang()
  const code = op.command?.exit_code
  if (op.status === 'timeout') return <Tag tone="warn">{w.history.stoppedAt(span(op.duration_ms, lang))}</Tag>
  if (op.status === 'unknown') return <Tag>{w.history.unknown}</Tag>
  if (op.status === 'cancelled') return <Tag>{w.status.cancelled}</Tag>
  if (op.status === 'denied') return <Tag tone="deny">{w.status.denied}</Tag>
  if (op.status === 'failed') return <Tag tone="fail">{code === undefined ? w.status.failed : code >= 128 ? w.history.killed : w.history.exit(code)}</Tag>
  return null
}

function Meta({ op }: { op: Operation }) {
  const w = useWords()
  const { added, removed } = lineCount(op)
  const files = changes(op)
  return (
    <>
      {op.command && !op.command.output_complete && !isRunning(op) && <Tag tone="warn">{w.history.cut}</Tag>}
      {files > 0 && op.command && <span className="shrink-0 whitespace-nowrap text-faint max-desk:hidden">{w.history.files(files)}</span>}
      {op.file && !op.file.before_hash && op.type === 'file.write' && <span className="shrink-0 whitespace-nowrap text-faint max-phone:hidden">{w.history.isNew}</span>}
      {added + removed > 0 && <Lines added={added} removed={removed} />}
      {op.file && added + removed === 0 && op.file.after_size !== undefined && <span className="shrink-0 whitespace-nowrap text-faint">{size(op.file.after_size)}</span>}
      <Outcome op={op} />
    </>
  )
}

// barWidth is logarithmic, from a millisecond to ten minutes.
const barWidth = (ms: number) => Math.max(1, Math.min(34, (Math.log10(Math.max(1, ms)) / Math.log10(600_000)) * 34))

export function describeRow(op: Operation, w: ReturnType<typeof useWords>, lang: ReturnType<typeof useLang>): string {
  const code = op.command?.exit_code
  return [clock(new Date(op.started_at)), label(w.kinds, op.type), label(w.status, op.status), code ? w.history.exit(code) : '', line(subject(op)), isRunning(op) ? '' : span(op.duration_ms, lang)].filter(Boolean).join(', ')
}

type RowProps = { row: Row; nested: boolean; selected: boolean; actor: boolean; sandbox?: string; onOpen: (row: Row) => void }

export const OperationRow = memo(function OperationRow({ row, nested, selected, actor, sandbox, onOpen }: RowProps) {
  const w = useWords()
  const lang = useLang()
  const { op } = row
  const text = subject(op)
  const at = new Date(op.started_at)
  const why = hasFailed(op) && !op.command ? reason(op) : undefined
  return (
    <div
      role="row" aria-selected={selected} aria-label={describeRow(op, w, lang)} tabIndex={selected ? 0 : -1} onClick={() => onOpen(row)}
      className={cn('h-full cursor-default border-l-2 border-transparent px-5 max-desk:px-3', nested && 'pl-9 max-desk:pl-5', isRunning(op) ? 'bg-selected/60' : 'hover:bg-hover', selected && 'border-brand bg-selected hover:bg-selected')}
    >
      <div role="gridcell" className="flex h-8 items-center gap-2 max-desk:h-9">
        <time dateTime={op.started_at} title={at.toISOString()} className="w-[62px] shrink-0 max-phone:w-auto"><span className="text-faint">{clock(at).slice(0, 6)}</span>{clock(at).slice(6)}</time>
        <StatusGlyph op={op} />
        <TypeIcon type={op.type} />
        {sandbox && <span className="max-w-36 shrink-0 truncate text-muted-foreground max-phone:hidden"><Text of={sandbox} /></span>}
        <span className={cn('min-w-0 truncate', text ? 'font-mono text-sm' : '')}>{text ? <Text of={text} /> : label(w.kinds, op.type)}</span>
        {text && !op.command && <span className="shrink-0 text-faint max-phone:hidden">{label(w.kinds, op.type)}</span>}
        {why && <span className="min-w-0 truncate text-faint"><Text of={why} /></span>}
        <span className="flex-1" />
        {actor && actorOf(op) && <span className="max-w-40 shrink-0 truncate text-faint max-desk:hidden"><Text of={actorOf(op)} /></span>}
        <Meta op={op} />
        <span aria-hidden className="flex w-[34px] shrink-0 max-phone:hidden">{!isRunning(op) && <span className="h-1 rounded-sm bg-muted-foreground/70" style={{ width: barWidth(op.duration_ms) }} />}</span>
        <span className="w-[68px] shrink-0 text-right whitespace-nowrap text-muted-foreground max-phone:w-auto"><Took op={op} /></span>
      </div>
      {hasPeek(op) && !selected && <div className="pl-[116px] max-phone:pl-6"><Peek row={row} /></div>}
      {row.snippets.slice(0, 1).map((one, i) => (
        <p key={i} className="flex h-5 gap-2 truncate pl-[116px] text-sm text-muted-foreground max-phone:pl-6"><span className="text-faint">{one.field}</span><Snippet of={one} /></p>
      ))}
    </div>
  )
})

// Snippet shows where a text was found; its places count bytes.
function Snippet({ of }: { of: Row['snippets'][number] }) {
  const bytes = new TextEncoder().encode(of.text)
  const part = (from: number, to: number) => line(new TextDecoder().decode(bytes.slice(from, to)))
  return <bdi className="min-w-0 truncate font-mono">{part(0, of.start)}<mark className="bg-brand-soft font-semibold text-brand">{part(of.start, of.end)}</mark>{part(of.end, bytes.length)}</bdi>
}

export function GapRow({ row, onOpen }: { row: Row; onOpen: (row: Row) => void }) {
  const w = useWords()
  const { op } = row
  return (
    <div role="row" aria-label={w.history.gap} onClick={() => onOpen(row)} className="h-full px-5 py-1 max-desk:px-3">
      <div role="gridcell" className="flex h-full items-center gap-2 rounded-md border border-dashed border-warn/70 px-2.5">
        <TriangleAlert className="size-4 shrink-0 text-warn" aria-hidden />
        <span className="shrink-0 font-medium">{op.type === 'recorder.restarted' ? w.history.restarted : w.history.gap}</span>
        <span className="min-w-0 truncate text-muted-foreground"><Text of={reason(op) ?? subject(op)} /></span>
        <span className="flex-1" />
        <time dateTime={op.started_at} title={op.started_at} className="text-faint">{clock(new Date(op.started_at))}</time>
      </div>
    </div>
  )
}

type GroupProps = { group: Group; open: boolean; whole: boolean; total?: Total; sandbox?: string; onToggle: (key: string) => void }

export const GroupRow = memo(function GroupRow({ group, open, whole, total, sandbox, onToggle }: GroupProps) {
  const w = useWords()
  const lang = useLang()
  const { actor, source } = group.row.op
  const Chevron = open ? ChevronDown : ChevronRight
  const Who = actor.type === 'user' || actor.type === 'human' ? CircleUser : Bot
  // What is counted by the server may lag behind what has just come.
  const all = Math.max(group.rows.length, total?.operations ?? 0)
  const failed = Math.max(group.failed, total?.failed ?? 0)
  const who = group.grouping !== 'hour' && (group.grouping !== 'thread' || !group.name)
  return (
    <div role="row" className="h-full border-t">
      <div role="gridcell" className="h-full">
        <button type="button" aria-expanded={open} onClick={() => onToggle(group.key)} className="flex h-full w-full items-center gap-2 bg-background px-5 text-left hover:bg-hover max-desk:px-3">
          <Chevron aria-hidden className="size-4 shrink-0 text-muted-foreground" />
          <Who aria-hidden className="size-4 shrink-0 text-muted-foreground" strokeWidth={1.6} />
          {who && <span className="min-w-0 truncate font-medium"><Text of={actorOf(group.row.op) || w.history.noActor} /></span>}
          {group.grouping === 'hour' && <span className="font-medium">{moment(group.name, lang)}</span>}
          {group.grouping === 'run' && <span className="min-w-0 truncate text-muted-foreground">{group.name ? <>{w.history.run} <span className="font-mono text-sm"><Text of={shortRun(group.name)} /></span></> : ''}</span>}
          {group.grouping === 'thread' && group.name && <span className="min-w-0 truncate font-medium"><Text of={group.name} /></span>}
          {source !== 'sdk' && group.grouping !== 'hour' && <Tag className="max-phone:hidden">{source}</Tag>}
          {sandbox && <span className="min-w-0 truncate text-faint max-phone:hidden"><Text of={sandbox} /></span>}
          {group.running && <Tag tone="live">{w.live.on}</Tag>}
          <span className="flex-1" />
          <MiniStrip rows={group.rows} />
          <span className="w-16 shrink-0 text-right text-muted-foreground max-phone:w-auto">{w.history.ops(all, `${count(all)}${whole || total ? '' : '+'}`)}</span>
          <span className="w-16 shrink-0 text-right text-fail max-phone:w-auto">{failed > 0 && w.history.failed(count(failed))}</span>
          <span className="hidden w-24 shrink-0 text-right @min-[820px]:block"><Lines added={group.added} removed={group.removed} /></span>
          <span className="w-24 shrink-0 text-right text-muted-foreground max-desk:hidden">{group.ms > 0 && span(group.ms, lang)}</span>
        </button>
      </div>
    </div>
  )
})
