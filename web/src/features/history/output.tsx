import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Download, Search, WrapText } from 'lucide-react'
import { Fragment, type ReactNode, memo, useMemo, useState } from 'react'
import { Notice } from '@/components/notice'
import { Button, IconButton } from '@/components/ui/button'
import { Segments } from '@/components/ui/tag'
import type { Row } from '@/features/history/rows'
import { type Span, lines } from '@/lib/ansi'
import { operationPath, prefix } from '@/lib/api'
import { cn } from '@/lib/cn'
import { count, size } from '@/lib/format'
import { isRunning } from '@/lib/operation'
import { type Stream, readOutput } from '@/lib/queries'
import { visible } from '@/lib/safe'
import { useWords } from '@/lib/words'

const pageBytes = 256 << 10
const longLine = 20_000 // characters of a line that are laid out

// Output is what a command printed: of a failed one the end first.
export function Output({ row }: { row: Row }) {
  const w = useWords()
  const [wrap, setWrap] = useState(true)
  const [raw, setRaw] = useState(false)
  const [find, setFind] = useState<string>()
  const command = row.op.command
  if (!command) return null
  const kept: [Stream, number][] = [['stderr', command.stderr_kept_bytes], ['stdout', command.stdout_kept_bytes]]
  const full = kept.filter(([, bytes]) => bytes > 0)
  const order = row.op.status === 'failed' ? full : full.reverse()
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex h-9 shrink-0 items-center gap-1 border-b px-3">
        {find === undefined ? <span className="flex-1" /> : (
          <input autoFocus aria-label={w.details.find} placeholder={w.details.find} value={find} onChange={(event) => setFind(event.target.value)} onKeyDown={(event) => event.key === 'Escape' && (event.stopPropagation(), setFind(undefined))} className="h-7 min-w-0 flex-1 rounded-md border border-input bg-background px-2" />
        )}
        <Segments label={w.details.output} value={raw ? 'raw' : 'colours'} onChange={(to) => setRaw(to === 'raw')} options={[{ value: 'colours', label: w.details.colours }, { value: 'raw', label: w.details.rawOutput }]} />
        <IconButton label={w.details.wrap} aria-pressed={wrap} onClick={() => setWrap(!wrap)} className={cn(wrap && 'text-brand')}><WrapText /></IconButton>
        <IconButton label={w.details.find} onClick={() => setFind(find === undefined ? '' : undefined)}><Search /></IconButton>
        {full.map(([stream]) => (
          <Button key={stream} asChild variant="ghost" size="sm"><a href={`${prefix}${operationPath(row.at, row.op.id)}/output?stream=${stream}`} download={`${row.op.id}.${stream}`} aria-label={w.details.downloadOut(stream)} title={w.details.downloadOut(stream)}><Download />{full.length > 1 && stream}</a></Button>
        ))}
      </div>
      <div tabIndex={0} role="region" aria-label={w.details.output} className="min-h-0 flex-1 overflow-auto bg-term text-term-foreground">
        {full.length === 0 && <p className="p-4 text-muted-foreground">{isRunning(row.op) ? w.details.stillRunning : command.output_complete ? w.details.none : w.details.notKept}</p>}
        {order.map(([stream, bytes]) => <Printed key={`${row.op.id} ${stream}`} row={row} stream={stream} bytes={bytes} wrap={wrap} raw={raw} find={find?.toLowerCase() ?? ''} named={full.length > 1} />)}
      </div>
    </div>
  )
}

type PrintedProps = { row: Row; stream: Stream; bytes: number; wrap: boolean; raw: boolean; find: string; named: boolean }

function Printed({ row, stream, bytes, wrap, raw, find, named }: PrintedProps) {
  const w = useWords()
  const tail = row.op.status !== 'succeeded'
  const [pages, setPages] = useState(1)
  const shown = Math.min(bytes, pages * pageBytes)
  const [from, to] = tail ? [bytes - shown, bytes] : [0, shown]
  const { data, error, refetch } = useQuery({
    queryKey: ['output', row.at.connection, row.at.sandbox, row.op.id, stream, from, to], staleTime: Infinity, placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => new TextDecoder().decode(await readOutput(row.at, row.op.id, stream, from, to, signal)),
  })
  const more = shown < bytes && <Button variant="ghost" size="sm" onClick={() => setPages(pages + 1)}>{tail ? w.details.earlierOutput : w.details.laterOutput} ({size(bytes - shown)})</Button>
  const printed = useMemo(() => (data === undefined ? [] : raw ? rawLines(data) : lines(data)), [data, raw])
  const blocks = useMemo(() => blocksOf(find ? printed.filter((one) => one.map((part) => part.text).join('').toLowerCase().includes(find)) : printed), [printed, find])
  return (
    <section aria-label={stream} className={cn(named && 'border-b last:border-0')}>
      {named && <h3 className="sticky top-0 z-10 bg-term px-3 py-0.5 text-xs text-faint">{stream} {size(bytes)}</h3>}
      {error && <div className="p-3"><Notice error={error} onRetry={refetch} /></div>}
      {tail && more}
      <pre className={cn('px-3 py-2 font-mono text-sm [unicode-bidi:plaintext]', wrap ? 'break-all whitespace-pre-wrap' : 'w-max min-w-full')}>
        {blocks.map((one, i) => <Block key={i} spans={one} find={find} />)}
      </pre>
      {!tail && more}
    </section>
  )
}

const rawLines = (text: string): Span[][] => text.replace(/\n$/, '').split('\n').map((one) => [{ text: visible(one.replaceAll('\r', '\u240d')) }])

const blockLines = 200

// blocksOf puts many lines together, as few pieces as their styles allow: what
// is far away from what is seen is not laid out.
function blocksOf(list: Span[][]): Span[][] {
  const out: Span[][] = []
  list.forEach((spans, i) => {
    if (i % blockLines === 0) out.push([])
    const block = out.at(-1) ?? []
    for (const one of [...cut(spans), { text: '\n' }]) {
      const last = block.at(-1)
      if (last && sameStyle(last, one)) last.text += one.text
      else block.push({ ...one })
    }
  })
  return out
}

const sameStyle = (a: Span, b: Span) => b.text === '\n' || (a.color === b.color && a.bold === b.bold && a.dim === b.dim && a.italic === b.italic && a.underline === b.underline)

const Block = memo(function Block({ spans: list, find }: { spans: Span[]; find: string }) {
  return (
    <div className="[contain-intrinsic-size:auto_3600px] [content-visibility:auto]">
      {list.map((one, i) => {
        const text = find ? marked(one.text, find) : one.text
        if (!one.color && !one.bold && !one.dim && !one.italic && !one.underline) return <Fragment key={i}>{text}</Fragment>
        return <span key={i} style={{ color: one.color, fontWeight: one.bold ? 600 : undefined, opacity: one.dim ? 0.75 : undefined, fontStyle: one.italic ? 'italic' : undefined, textDecoration: one.underline ? 'underline' : undefined }}>{text}</span>
      })}
    </div>
  )
})

// cut keeps a line from being longer than a browser lays out well.
function cut(list: Span[]): Span[] {
  const out: Span[] = []
  let left = longLine
  for (const one of list) {
    const text = one.text.slice(0, left)
    left -= text.length
    out.push({ ...one, text: text.length < one.text.length ? `${text}…` : text })
    if (left <= 0) break
  }
  return out
}

// marked shows each place at which a text stands.
function marked(text: string, find: string) {
  const out: ReactNode[] = []
  const low = text.toLowerCase()
  let from = 0
  for (let at = low.indexOf(find); at >= 0; at = low.indexOf(find, from)) {
    out.push(text.slice(from, at), <mark key={at} className="bg-brand-soft text-brand">{text.slice(at, at + find.length)}</mark>)
    from = at + find.length
  }
  return [...out, text.slice(from)]
}

// Complete says how much of the output is kept.
export function Complete({ row }: { row: Row }) {
  const w = useWords()
  const { command } = row.op
  if (!command) return null
  const bytes = command.stdout_kept_bytes + command.stderr_kept_bytes
  if (isRunning(row.op)) return <span className="text-brand">{w.details.stillRunning}</span>
  if (!command.output_complete) return <span className="text-warn">{w.details.cutNote(size(bytes))}</span>
  return <span title={count(bytes)}>{w.details.complete(size(bytes))}</span>
}
