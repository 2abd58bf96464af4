import { useQuery } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { ChevronLeft, ChevronRight } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { Notice, Skeleton } from '@/components/notice'
import { IconButton } from '@/components/ui/button'
import { Input } from '@/components/ui/input'
import { readPart } from '@/features/files/contents'
import type { Name } from '@/features/files/names'
import type { Place } from '@/lib/api'
import { size as sizeOf } from '@/lib/format'
import { usePhone } from '@/lib/hooks'
import { useWords } from '@/lib/words'

const part = 256 * 1024 // bytes that are read at once
const height = 20

// HexView shows bytes, a part of the file at a time: its length does not matter.
export function HexView({ at, name, size }: { at: Place; name: Name; size?: number }) {
  const w = useWords()
  const width = usePhone() ? 8 : 16
  const [from, setFrom] = useState(0)
  const [goal, setGoal] = useState(0)
  const [text, setText] = useState('')
  const ref = useRef<HTMLDivElement>(null)
  const { data, error, refetch } = useQuery({ queryKey: ['files', at.connection, at.sandbox, 'hex', name, from], staleTime: 30_000, gcTime: 60_000, retry: false, queryFn: ({ signal }) => readPart(at, name, from, part, signal) })
  const whole = data?.size ?? size
  const rows = useVirtualizer({ count: Math.ceil((data?.bytes.length ?? 0) / width), getScrollElement: () => ref.current, estimateSize: () => height, overscan: 10 })
  const goTo = (offset: number) => {
    const end = whole ?? Infinity
    const to = Math.max(0, Math.min(offset, end - 1))
    setFrom(Math.floor(to / part) * part)
    setGoal(to)
  }
  useEffect(() => {
    if (data) rows.scrollToIndex(Math.floor((goal % part) / width), { align: 'start' })
  }, [data, goal]) // eslint-disable-line react-hooks/exhaustive-deps -- when another place is asked for, and is there
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <form className="flex h-9 shrink-0 items-center gap-2 border-b px-4 text-sm text-muted-foreground max-desk:h-11" onSubmit={(event) => {
        event.preventDefault()
        const offset = Number(text.trim())
        if (Number.isFinite(offset)) goTo(offset)
      }}>
        <IconButton label={w.files.before} disabled={from === 0} onClick={() => goTo(from - part)}><ChevronLeft /></IconButton>
        <span className="font-mono" role="status">{data && `0x${from.toString(16)}–0x${(from + data.bytes.length).toString(16)}`}</span>
        <IconButton label={w.files.after} disabled={whole !== undefined ? from + part >= whole : (data?.bytes.length ?? 0) < part} onClick={() => goTo(from + part)}><ChevronRight /></IconButton>
        <span className="flex-1" />
        {whole !== undefined && <span className="max-phone:hidden">{sizeOf(whole)}</span>}
        <Input aria-label={w.files.offset} placeholder={w.files.offset} value={text} onChange={(event) => setText(event.target.value)} className="h-[26px] w-36 font-mono text-sm" />
      </form>
      {error && <div className="p-4"><Notice error={error} onRetry={() => refetch()} /></div>}
      {!data && !error && <Skeleton rows={20} height={height} />}
      {data && data.bytes.length === 0 && <p className="p-4 text-muted-foreground">{w.files.emptyFile}</p>}
      <div ref={ref} tabIndex={0} role="region" aria-label={w.files.bytes} className="min-h-0 flex-1 overflow-auto font-mono text-sm outline-none">
        <div className="relative" style={{ height: rows.getTotalSize() }}>
          {data && rows.getVirtualItems().map((row) => {
            const bytes = data.bytes.subarray(row.index * width, (row.index + 1) * width)
            return (
              <div key={row.index} className="absolute flex gap-6 px-4 whitespace-pre max-phone:gap-3" style={{ transform: `translateY(${row.start}px)`, height }}>
                <span className="text-faint">{(from + row.index * width).toString(16).padStart(8, '0')}</span>
                <span>{Array.from({ length: width }, (_, i) => (i < bytes.length ? (bytes[i] ?? 0).toString(16).padStart(2, '0') : '  ')).join(' ').replace(/^(.{23}) /, '$1  ')}</span>
                <span className="text-muted-foreground">{Array.from(bytes, (one) => (one >= 0x20 && one < 0x7f ? String.fromCharCode(one) : '·')).join('')}</span>
              </div>
            )
          })}
        </div>
      </div>
    </div>
  )
}
