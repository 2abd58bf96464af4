import { useVirtualizer } from '@tanstack/react-virtual'
import { Search } from 'lucide-react'
import { Fragment, memo, useEffect, useMemo, useRef, useState } from 'react'
import { IconButton } from '@/components/ui/button'
import { type Ended, follow } from '@/features/commands/follow'
import { type Line, Printed } from '@/features/commands/printed'
import { spans } from '@/lib/ansi'
import type { Place, Problem } from '@/lib/api'
import { cn } from '@/lib/cn'
import { clock, count, size } from '@/lib/format'
import { useWords } from '@/lib/words'

export type Followed = { lines: Line[]; dropped: number; skipped: number; bytes: { stdout: number; stderr: number }; state: 'connecting' | 'live' | 'lost' | 'ended'; ended?: Ended; problem?: Problem }

// useFollow is the output of a command, at most as often as the screen is drawn.
export function useFollow(at: Place, id: string): Followed {
  const [now, setNow] = useState<Followed>({ lines: [], dropped: 0, skipped: 0, bytes: { stdout: 0, stderr: 0 }, state: 'connecting' })
  useEffect(() => {
    const gone = new AbortController()
    const printed = new Printed()
    let next: Partial<Followed> = {}
    let frame = 0
    const draw = () => {
      frame = 0
      const change = next
      next = {}
      if (!gone.signal.aborted) setNow((old) => ({ ...old, lines: printed.lines.slice(), dropped: printed.dropped, skipped: printed.skipped, bytes: { ...printed.bytes }, ...change }))
    }
    const later = (change: Partial<Followed> = {}) => {
      next = { ...next, ...change }
      frame ||= requestAnimationFrame(draw)
    }
    void follow(at, id, {
      onPiece: (piece) => { printed.add(piece); later() }, onState: (state) => later({ state }), onEnd: (ended) => later({ ended, state: 'ended' }), onProblem: (problem) => later({ problem, state: 'ended' }),
    }, gone.signal)
    return () => {
      gone.abort()
      cancelAnimationFrame(frame)
    }
  }, [at.connection, at.sandbox, id]) // eslint-disable-line react-hooks/exhaustive-deps -- one stream for one command
  return now
}

const rowHeight = 18
const longest = 20_000 // characters of a line that are laid out

// LiveOutput shows lines as they come, and stays at the end while it is there.
export function LiveOutput({ output }: { output: Followed }) {
  const w = useWords()
  const scroller = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  const [finding, setFinding] = useState(false)
  const [text, setText] = useState('')
  const low = finding ? text.toLowerCase() : ''
  const lines = useMemo(() => (low ? output.lines.filter((line) => line.text.toLowerCase().includes(low)) : output.lines), [output.lines, low])
  const list = useVirtualizer({ count: lines.length, getScrollElement: () => scroller.current, estimateSize: () => rowHeight, overscan: 20, getItemKey: (i) => lines[i]?.no ?? i })
  useEffect(() => {
    const box = scroller.current
    if (box && atEnd.current) box.scrollTop = box.scrollHeight
  }, [lines])
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex h-9 shrink-0 items-center gap-2 border-b px-4 text-sm text-faint max-desk:h-11">
        <span>{output.state === 'ended' || output.state === 'live' ? `${w.commands.lines(count(output.dropped + output.lines.length))}, ${size(output.bytes.stdout + output.bytes.stderr)}` : w.commands[output.state]}</span>
        {output.dropped > 0 && <span>{w.commands.dropped(count(output.lines.length))}</span>}
        {output.skipped > 0 && <span className="text-warn">{w.commands.skipped(size(output.skipped))}</span>}
        <span className="flex-1" />
        {finding && <input autoFocus aria-label={w.details.find} placeholder={w.details.find} value={text} onChange={(event) => setText(event.target.value)} onKeyDown={(event) => event.key === 'Escape' && (event.stopPropagation(), setFinding(false))} className="h-7 w-56 rounded-md border border-input bg-background px-2 text-foreground" />}
        {finding && low && <span>{count(lines.length)}</span>}
        <IconButton label={w.details.find} aria-pressed={finding} onClick={() => setFinding(!finding)}><Search /></IconButton>
      </div>
      <div
        ref={scroller} tabIndex={0} role="region" aria-label={w.details.output} className="min-h-0 flex-1 overflow-auto bg-term py-1 font-mono text-sm text-term-foreground"
        onScroll={({ currentTarget: box }) => { atEnd.current = box.scrollTop + box.clientHeight >= box.scrollHeight - rowHeight }}
      >
        <div className="relative w-max min-w-full" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((place) => {
            const line = lines[place.index]
            return line && <Row key={line.no} line={line} top={place.start} second={secondOf(line) === secondOf(lines[place.index - 1]) ? '' : secondOf(line)} find={low} />
          })}
        </div>
      </div>
    </div>
  )
}

const secondOf = (line: Line | undefined) => (line?.time ? clock(new Date(line.time)) : '')

type RowProps = { line: Line; top: number; second: string; find: string }

// Row has the second in which it was printed, where that changes.
const Row = memo(function Row({ line, top, second, find }: RowProps) {
  const parts = useMemo(() => spans(line.text.length > longest ? `${line.text.slice(0, longest)}…` : line.text), [line.text])
  return (
    <div className="absolute left-0 flex h-[18px] whitespace-pre [unicode-bidi:plaintext]" style={{ transform: `translateY(${top}px)` }}>
      <span aria-hidden className="w-[76px] shrink-0 pl-4 text-xs leading-[18px] text-faint select-none">{second}</span>
      <span aria-hidden className={cn('mr-2 w-0.5 shrink-0', line.stream === 'stderr' && 'bg-fail/70')} />
      <span className="pr-4">{parts.map((one, i) => (one.color || one.bold || one.dim || one.italic || one.underline
        ? <span key={i} style={{ color: one.color, fontWeight: one.bold ? 600 : undefined, opacity: one.dim ? 0.75 : undefined, fontStyle: one.italic ? 'italic' : undefined, textDecoration: one.underline ? 'underline' : undefined }}>{marked(one.text, find)}</span>
        : <Fragment key={i}>{marked(one.text, find)}</Fragment>))}</span>
    </div>
  )
})

function marked(text: string, find: string) {
  if (!find) return text
  const at = text.toLowerCase().indexOf(find)
  if (at < 0) return text
  return <>{text.slice(0, at)}<mark className="bg-brand-soft text-brand">{text.slice(at, at + find.length)}</mark>{text.slice(at + find.length)}</>
}
