import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { Button } from '@/components/ui/button'
import { type Grouping, placeKey } from '@/features/history/filter'
import { GapRow, GroupRow, OperationRow, hasPeek } from '@/features/history/row'
import { type Item, type Row, itemsOf, rowKey } from '@/features/history/rows'
import type { Total } from '@/features/history/summary'
import { cn } from '@/lib/cn'
import { useKeys, usePhone } from '@/lib/hooks'
import { hasFailed, isGap } from '@/lib/operation'
import { useWords } from '@/lib/words'

type Props = {
  rows: Row[]; grouping: Grouping; selected?: string; whole: boolean; loadingMore: boolean; held: number; jump?: { time: number }; totals?: Map<string, Total>; sandboxName?: (key: string) => string
  onOpen: (row: Row | undefined) => void; onMore: () => void; onTop: (top: boolean) => void; onHeld: () => void; foot?: ReactNode
}

function heightOf(item: Item | undefined, phone: boolean, selected: string | undefined): number {
  if (!item) return 32
  if (item.kind === 'group') return phone ? 44 : 40
  if (item.kind === 'more') return phone ? 40 : 32
  if (isGap(item.row.op)) return 40
  return (phone ? 36 : 32) + (hasPeek(item.row.op) && item.key !== selected ? 20 : 0) + (item.row.snippets.length > 0 ? 20 : 0)
}

// HistoryList shows as many rows as fit, of however many there are.
export function HistoryList({ rows, grouping, selected, whole, loadingMore, held, jump, totals, sandboxName, onOpen, onMore, onTop, onHeld, foot }: Props) {
  const w = useWords()
  const phone = usePhone()
  const scroller = useRef<HTMLDivElement>(null)
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set())
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set())
  const items = useMemo(() => itemsOf(rows, grouping, toggled, unfolded), [rows, grouping, toggled, unfolded])
  const list = useVirtualizer({
    count: items.length, getScrollElement: () => scroller.current, overscan: 12, getItemKey: (i) => items[i]?.key ?? i, estimateSize: (i) => heightOf(items[i], phone, selected),
  })
  useEffect(() => list.measure(), [items, phone, selected, list])
  const seen = list.getVirtualItems()
  const last = seen.at(-1)?.index ?? -1
  useEffect(() => {
    if (!whole && !loadingMore && last >= items.length - 30) onMore()
  }, [whole, loadingMore, last, items.length, onMore])

  const toggle = useCallback((key: string) => setToggled((old) => flip(old, key)), [])
  const reveal = (row: Row | undefined) => {
    if (!row) return
    onOpen(row)
    const at = items.findIndex((item) => item.key === rowKey(row))
    if (at >= 0) list.scrollToIndex(at, { align: 'auto' })
  }
  const visible = items.flatMap((item) => (item.kind === 'row' ? [item.row] : []))
  const now = visible.findIndex((row) => rowKey(row) === selected)
  const failures = (from: number, step: number) => {
    for (let i = from + step; i >= 0 && i < visible.length; i += step) {
      const row = visible[i]
      if (row && hasFailed(row.op)) return row
    }
    return undefined
  }
  const next = () => reveal(visible[now + 1])
  const previous = () => reveal(visible[Math.max(0, now - 1)])
  useKeys({ j: next, k: previous, ArrowDown: next, ArrowUp: previous, Enter: () => now < 0 && next(), n: () => reveal(failures(now, 1)), N: () => reveal(failures(now < 0 ? visible.length : now, -1)), Escape: () => onOpen(undefined) })

  useEffect(() => {
    if (!jump) return
    const at = items.findIndex((item) => item.kind === 'row' && Math.abs(Date.parse(item.row.op.started_at) - jump.time) <= nearest(items, jump.time))
    if (at >= 0) list.scrollToIndex(at, { align: 'center' })
  }, [jump]) // eslint-disable-line react-hooks/exhaustive-deps -- only when another place is asked for

  const cell = (item: Item) => {
    if (item.kind === 'group') return <GroupRow group={item.group} open={item.open} whole={whole} total={totals?.get(item.key)} sandbox={grouping === 'run' ? sandboxName?.(placeKey(item.group.row.at)) : undefined} onToggle={toggle} />
    if (item.kind === 'more') {
      return (
        <div role="row" className="h-full"><div role="gridcell" className="h-full">
          <button type="button" className="h-full w-full pl-[58px] text-left text-brand hover:underline" onClick={() => setUnfolded((old) => flip(old, item.group.key))}>{w.history.earlier(item.hidden, item.failed)}</button>
        </div></div>
      )
    }
    if (isGap(item.row.op)) return <GapRow row={item.row} onOpen={onOpen} />
    return <OperationRow row={item.row} nested={item.nested} selected={item.key === selected} actor={grouping === 'none' || grouping === 'hour'} sandbox={grouping === 'none' || grouping === 'hour' || grouping === 'actor' ? sandboxName?.(placeKey(item.row.at)) : undefined} onOpen={onOpen} />
  }
  return (
    <div className="@container relative flex min-h-0 min-w-0 flex-1 flex-col">
      {held > 0 && <Button size="sm" className="absolute top-2 left-1/2 z-20 -translate-x-1/2 shadow-floating" onClick={() => { scroller.current?.scrollTo({ top: 0 }); onHeld() }}>{w.history.newOnes(held)}</Button>}
      <div ref={scroller} role="grid" aria-label={w.history.list} aria-rowcount={whole ? items.length : -1} tabIndex={0} className="min-h-0 flex-1 overflow-y-auto outline-offset-[-2px]" onScroll={(event) => onTop(event.currentTarget.scrollTop < 8)}>
        <div role="rowgroup" className="relative" style={{ height: list.getTotalSize() }}>
          {seen.map((place) => {
            const item = items[place.index]
            return item && <div key={place.key} role="presentation" className={cn('absolute inset-x-0 top-0')} style={{ height: place.size, transform: `translateY(${place.start}px)` }}>{cell(item)}</div>
          })}
        </div>
        {foot}
      </div>
    </div>
  )
}

function flip(old: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(old)
  if (!next.delete(key)) next.add(key)
  return next
}

function nearest(items: Item[], time: number): number {
  return items.reduce((least, item) => (item.kind === 'row' ? Math.min(least, Math.abs(Date.parse(item.row.op.started_at) - time)) : least), Infinity)
}
