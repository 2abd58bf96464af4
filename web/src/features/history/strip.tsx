import { type PointerEvent, memo, useMemo, useState } from 'react'
import type { Row } from '@/features/history/rows'
import { clock, count } from '@/lib/format'
import { useWidth } from '@/lib/hooks'
import { type Lane, hasFailed, isGap, lane } from '@/lib/operation'
import { useWords } from '@/lib/words'

const lanes: Lane[] = ['command', 'file', 'terminal', 'other']
const tones: Record<Lane, string> = { command: 'var(--lane-command)', file: 'var(--lane-file)', terminal: 'var(--lane-terminal)', other: 'var(--muted-foreground)' }
const height = 14

type Marks = { used: Lane[]; ticks: Record<Lane, string>; failed: string; gaps: { x: number; w: number }[] }

// draw writes a mark at every pixel that has one; failures are never lost in it.
function draw(rows: Row[], from: number, to: number, width: number): Marks {
  const used = lanes.filter((one) => one === 'command' || one === 'file' || rows.some(({ op }) => lane(op.type) === one && !isGap(op)))
  const at = (time: number) => Math.round(((time - from) / Math.max(1, to - from)) * (width - 4))
  const cells = new Map<string, { lane: Lane; x: number; w: number; failed: boolean }>()
  const gaps: { x: number; w: number }[] = []
  for (const { op } of rows) {
    const x = at(Date.parse(op.started_at))
    const w = Math.max(1.5, at(Date.parse(op.started_at) + op.duration_ms) - x)
    if (isGap(op)) gaps.push({ x, w: Math.max(4, w) })
    const row = lane(op.type)
    const key = `${row} ${x}`
    const old = cells.get(key)
    cells.set(key, { lane: row, x, w: Math.max(w, old?.w ?? 0), failed: hasFailed(op) || Boolean(old?.failed) })
  }
  const ticks: Record<Lane, string> = { command: '', file: '', terminal: '', other: '' }
  let failed = ''
  for (const cell of cells.values()) {
    const y = used.indexOf(cell.lane) * height
    if (y < 0) continue
    ticks[cell.lane] += `M${cell.x} ${y + 2}h${cell.w}v${height - 4}h-${cell.w}z`
    if (cell.failed) failed += `M${cell.x - 0.5} ${y + 1}h3v${height - 2}h-3z`
  }
  return { used, ticks, failed, gaps }
}

type Props = { rows: Row[]; selected?: Row; live: boolean; zoomed: boolean; onRange: (from?: number, to?: number) => void; onJump: (time: number) => void }

// Strip is all that is loaded over time. To drag picks a time, a click jumps.
export const Strip = memo(function Strip({ rows, selected, live, zoomed, onRange, onJump }: Props) {
  const w = useWords()
  const { ref, width } = useWidth()
  const [drag, setDrag] = useState<{ from: number; to: number }>()
  const [from, to] = useMemo(() => {
    let least = Infinity
    let most = 0
    for (const { op } of rows) {
      const time = Date.parse(op.started_at)
      least = Math.min(least, time)
      most = Math.max(most, time + op.duration_ms)
    }
    return [least, Math.max(most, least + 1000)]
  }, [rows])
  const marks = useMemo(() => (width > 0 && rows.length > 0 ? draw(rows, from, to, width) : undefined), [rows, from, to, width])
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
  const failures = rows.filter(({ op }) => hasFailed(op)).length
  const chosen = selected && ((Date.parse(selected.op.started_at) - from) / (to - from)) * (width - 4)
  return (
    <div className="flex shrink-0 gap-3 border-b bg-sidebar px-5 pt-2 pb-1 max-desk:px-4">
      <div aria-hidden className="w-[72px] shrink-0 text-xs text-muted-foreground max-phone:hidden">
        {(marks?.used ?? []).map((one) => <div key={one} style={{ height, lineHeight: `${height}px` }}>{w.history.lanes[one]}</div>)}
      </div>
      <div ref={ref} className="min-w-0 flex-1">
        <svg
          role="img" aria-label={w.history.strip(count(rows.length), count(failures), clock(new Date(from)), clock(new Date(to)))} width={width} height={high}
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
          <span>{rows.length > 0 && clock(new Date(from))}</span>
          {zoomed && <button type="button" className="text-brand hover:underline" onClick={() => onRange()}>{w.history.whole}</button>}
          <span className={live ? 'text-record-text' : ''}>{live ? w.live.on : rows.length > 0 && clock(new Date(to))}</span>
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
    const bins = Array.from({ length: 20 }, () => ({ n: 0, failed: false }))
    rows.forEach(({ op }, i) => {
      const bin = bins[Math.min(19, Math.floor((((times[i] ?? from) - from) / Math.max(1, to - from)) * 20))]
      if (!bin) return
      bin.n++
      bin.failed ||= hasFailed(op)
    })
    const most = Math.max(1, ...bins.map((bin) => bin.n))
    return bins.map((bin) => ({ ...bin, h: bin.n && Math.max(2, Math.round((bin.n / most) * 14)) }))
  }, [rows])
  return (
    <svg aria-hidden width="80" height="16" className="hidden shrink-0 @min-[820px]:block">
      <path d="M0 15.500h80" stroke="var(--border-strong)" />
      {bars.map((bar, i) => <rect key={i} x={i * 4} y={15 - bar.h} width="2.500" height={bar.h} fill={bar.failed ? 'var(--fail)' : 'var(--lane-command)'} />)}
    </svg>
  )
})
