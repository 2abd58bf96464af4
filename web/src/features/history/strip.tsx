import { type PointerEvent, memo, useMemo, useState } from 'react'
import type { Row } from '@/features/history/rows'
import { type Summary, bins } from '@/features/history/summary'
import { count, moment } from '@/lib/format'
import { useWidth } from '@/lib/hooks'
import { type Lane, hasFailed, isGap, isRead, lane } from '@/lib/operation'
import { useLang, useWords } from '@/lib/words'

const lanes: Lane[] = ['command', 'file', 'terminal', 'other']
const tones: Record<Lane, string> = { command: 'var(--lane-command)', file: 'var(--lane-file)', terminal: 'var(--lane-terminal)', other: 'var(--muted-foreground)' }
const height = 14

type Marks = { used: Lane[]; ticks: Record<Lane, string>; failed: string; gaps: { x: number; w: number }[] }
type Cell = { lane: Lane; x: number; w: number; failed: boolean }

// ofRows has a cell at every pixel that has an operation, as long as it took.
function* ofRows(rows: Row[], at: (time: number) => number): Generator<Cell> {
  for (const { op } of rows) {
    const x = at(Date.parse(op.started_at))
    yield { lane: lane(op.type), x, w: Math.max(1.5, at(Date.parse(op.started_at) + op.duration_ms) - x), failed: hasFailed(op) }
  }
}

// ofSummary has those of what the server has counted.
function* ofSummary(summary: Summary, reads: boolean, at: (time: number) => number): Generator<Cell> {
  const from = Date.parse(summary.from ?? '')
  const span = Date.parse(summary.to ?? '') - from
  for (const bin of summary.bins) {
    if (!reads && isRead(bin.type)) continue
    const x = at(from + (bin.no / bins) * span)
    yield { lane: lane(bin.type), x, w: Math.max(1.5, at(from + ((bin.no + 1) / bins) * span) - x - 0.5), failed: bin.failed > 0 }
  }
}

// draw writes a mark at every pixel that has one; failures are never lost in it.
function draw(rows: Row[], cells: Iterable<Cell>, at: (time: number) => number): Marks {
  const kept = new Map<string, Cell>()
  for (const cell of cells) {
    const key = `${cell.lane} ${cell.x}`
    const old = kept.get(key)
    kept.set(key, { ...cell, w: Math.max(cell.w, old?.w ?? 0), failed: cell.failed || Boolean(old?.failed) })
  }
  const seen = new Set([...kept.values()].map((cell) => cell.lane))
  const used = lanes.filter((one) => one === 'command' || one === 'file' || seen.has(one))
  const gaps = rows.filter(({ op }) => isGap(op)).map(({ op }) => {
    const x = at(Date.parse(op.started_at))
    return { x, w: Math.max(4, at(Date.parse(op.started_at) + op.duration_ms) - x) }
  })
  const ticks: Record<Lane, string> = { command: '', file: '', terminal: '', other: '' }
  let failed = ''
  for (const cell of kept.values()) {
    const y = used.indexOf(cell.lane) * height
    ticks[cell.lane] += `M${cell.x} ${y + 2}h${cell.w}v${height - 4}h-${cell.w}z`
    if (cell.failed) failed += `M${cell.x - 0.5} ${y + 1}h3v${height - 2}h-3z`
  }
  return { used, ticks, failed, gaps }
}

type Props = { rows: Row[]; summary?: Summary; reads: boolean; selected?: Row; live: boolean; zoomed: boolean; onRange: (from?: number, to?: number) => void; onJump: (time: number) => void }

// Strip is all that is picked over time; without a summary, what of it is
// loaded. To drag picks a time, a click jumps.
export const Strip = memo(function Strip({ rows, summary, reads, selected, live, zoomed, onRange, onJump }: Props) {
  const w = useWords()
  const lang = useLang()
  const { ref, width } = useWidth()
  const [drag, setDrag] = useState<{ from: number; to: number }>()
  const [from, to] = useMemo(() => {
    let least = summary?.from ? Date.parse(summary.from) : Infinity
    let most = summary?.to ? Date.parse(summary.to) : 0
    for (const { op } of rows) {
      const time = Date.parse(op.started_at)
      least = Math.min(least, time)
      most = Math.max(most, time + op.duration_ms)
    }
    return [least, Math.max(most, least + 1000)]
  }, [rows, summary])
  const marks = useMemo(() => {
    if (width === 0 || rows.length === 0) return undefined
    const at = (time: number) => Math.round(((time - from) / Math.max(1, to - from)) * (width - 4))
    // What came after the count is drawn by itself.
    const news = summary?.to ? rows.filter(({ op }) => op.started_at > (summary.to ?? '')) : rows
    return draw(rows, summary ? [...ofSummary(summary, reads, at), ...ofRows(news, at)] : ofRows(rows, at), at)
  }, [rows, summary, reads, from, to, width])
  const time = (x: number) => from + (x / Math.max(1, width - 4)) * (to - from)
  const x = (event: PointerEvent) => Math.max(0, Math.min(width, event.clientX - event.currentTarget.getBoundingClientRect().left))
  const end = () => {
    if (!drag) return
    const [left, right] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)]
    if (right - left > 4) onRange(time(left), time(right))
    else onJump(time(left))
    setDrag(undefined)
  }
  const high = (marks?.used.length ?? 2) * height
  const all = Math.max(rows.length, summary?.operations ?? 0)
  const failures = Math.max(rows.filter(({ op }) => hasFailed(op)).length, summary?.failed ?? 0)
  const chosen = selected && ((Date.parse(selected.op.started_at) - from) / (to - from)) * (width - 4)
  return (
    <div className="flex shrink-0 gap-3 border-b bg-sidebar px-5 pt-2 pb-1 max-desk:px-4">
      <div aria-hidden className="w-[72px] shrink-0 text-xs text-muted-foreground max-phone:hidden">
        {(marks?.used ?? []).map((one) => <div key={one} style={{ height, lineHeight: `${height}px` }}>{w.history.lanes[one]}</div>)}
      </div>
      <div ref={ref} className="min-w-0 flex-1">
        <svg
          role="img" aria-label={w.history.strip(count(all), count(failures), moment(new Date(from).toISOString(), lang), moment(new Date(to).toISOString(), lang))} width={width} height={high}
          className="block cursor-crosshair touch-none select-none"
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId)
            setDrag({ from: x(event), to: x(event) })
          }}
          onPointerMove={(event) => drag && setDrag({ ...drag, to: x(event) })} onPointerUp={end} onPointerCancel={() => setDrag(undefined)}
        >
          <defs>
            <pattern id="gap" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0v5" stroke="var(--warn)" strokeWidth="1.5" opacity=".6" /></pattern>
          </defs>
          {marks?.used.map((one, i) => <path key={one} d={`M0 ${(i + 1) * height - 0.5}h${width}`} stroke="var(--border)" />)}
          {marks?.gaps.map((gap, i) => <rect key={i} x={gap.x} width={gap.w} height={high} fill="url(#gap)" />)}
          {marks?.used.map((one) => <path key={one} d={marks.ticks[one]} fill={tones[one]} />)}
          {marks && <path d={marks.failed} fill="var(--fail)" />}
          {chosen !== undefined && <rect x={chosen - 2} width={5} height={high} fill="none" stroke="var(--brand)" />}
          {live && <path d={`M${width - 1} 0v${high}`} stroke="var(--record)" strokeWidth="2" />}
          {drag && <rect x={Math.min(drag.from, drag.to)} width={Math.abs(drag.to - drag.from)} height={high} fill="var(--brand)" opacity=".18" />}
        </svg>
        <div className="flex justify-between text-xs text-faint">
          <span>{rows.length > 0 && moment(new Date(from).toISOString(), lang)}</span>
          {zoomed && <button type="button" className="text-brand hover:underline" onClick={() => onRange()}>{w.history.whole}</button>}
          <span className={live ? 'text-record-text' : ''}>{live ? w.live.on : rows.length > 0 && moment(new Date(to).toISOString(), lang)}</span>
        </div>
      </div>
    </div>
  )
})

// MiniStrip is the same picture in a few pixels.
export const MiniStrip = memo(function MiniStrip({ rows }: { rows: Row[] }) {
  const bars = useMemo(() => {
    const times = rows.map(({ op }) => Date.parse(op.started_at))
    const from = times.reduce((a, b) => Math.min(a, b), Infinity)
    const to = times.reduce((a, b) => Math.max(a, b), 0)
    const parts = Array.from({ length: 20 }, () => ({ n: 0, failed: false }))
    rows.forEach(({ op }, i) => {
      const bin = parts[Math.min(19, Math.floor((((times[i] ?? from) - from) / Math.max(1, to - from)) * 20))]
      if (!bin) return
      bin.n++
      bin.failed ||= hasFailed(op)
    })
    const most = Math.max(1, ...parts.map((bin) => bin.n))
    return parts.map((bin) => ({ ...bin, h: bin.n && Math.max(2, Math.round((bin.n / most) * 14)) }))
  }, [rows])
  return (
    <svg aria-hidden width="80" height="16" className="hidden shrink-0 @min-[820px]:block">
      <path d="M0 15.500h80" stroke="var(--border-strong)" />
      {bars.map((bar, i) => <rect key={i} x={i * 4} y={15 - bar.h} width="2.500" height={bar.h} fill={bar.failed ? 'var(--fail)' : 'var(--lane-command)'} />)}
    </svg>
  )
})
