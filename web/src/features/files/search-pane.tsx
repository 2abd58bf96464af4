import { useQuery } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { CaseSensitive, EyeOff, Regex, X } from 'lucide-react'
import { type FormEvent, useMemo, useRef, useState } from 'react'
import { Notice, Skeleton } from '@/components/notice'
import { Text } from '@/components/text'
import { IconButton } from '@/components/ui/button'
import { Input } from '@/components/ui/input'
import { type Found, searchFiles } from '@/features/files/contents'
import { type Name, base, nameOf, path } from '@/features/files/names'
import { cn } from '@/lib/cn'
import type { Place } from '@/lib/api'
import { usePhone } from '@/lib/hooks'
import { line } from '@/lib/safe'
import { useWords } from '@/lib/words'

type Asked = { content: string; name: string; regexp: boolean; exact: boolean; hidden: boolean }
type Row = { kind: 'file'; name: Name; n: number } | { kind: 'line'; name: Name; match: NonNullable<Found['matches']>[number] }
type Props = { at: Place; within: Name; onGo: (name: Name, line: number, column: number) => void; onClose: () => void }

// What was looked for stays while results are opened.
let kept: { draft: Asked; asked?: Asked } = { draft: { content: '', name: '', regexp: false, exact: false, hidden: false } }

// SearchPane finds lines in files.
export function SearchPane({ at, within, onGo, onClose }: Props) {
  const w = useWords()
  const [draft, setDraft] = useState(kept.draft)
  const [asked, setAsked] = useState(kept.asked)
  const height = usePhone() ? 40 : 26
  const ref = useRef<HTMLDivElement>(null)
  const found = useQuery({
    queryKey: ['files', at.connection, at.sandbox, 'content', within, asked], enabled: asked !== undefined, retry: false, staleTime: 30_000, refetchOnWindowFocus: false,
    queryFn: ({ signal }) => searchFiles(at, within, { content: asked?.content, name: asked?.name || undefined, regexp: asked?.regexp ? 'true' : undefined, ignore_case: asked?.exact ? undefined : 'true', hidden: asked?.hidden ? 'true' : undefined, limit: 2000 }, signal),
  })
  const rows = useMemo(() => {
    const out: Row[] = []
    const by = new Map<Name, NonNullable<Found['matches']>>()
    for (const match of found.data?.matches ?? []) by.set(nameOf(match), [...(by.get(nameOf(match)) ?? []), match])
    for (const [name, matches] of by) out.push({ kind: 'file', name, n: matches.length }, ...matches.map((match): Row => ({ kind: 'line', name, match })))
    return out
  }, [found.data])
  const list = useVirtualizer({ count: rows.length, getScrollElement: () => ref.current, estimateSize: () => height, overscan: 10 })
  const change = (part: Partial<Asked>) => {
    const next = { ...draft, ...part }
    setDraft(next)
    kept = { ...kept, draft: next }
    if (asked && !('content' in part) && !('name' in part)) ask(next)
  }
  const ask = (next: Asked) => {
    if (next.content === '') return
    setAsked(next)
    kept = { ...kept, asked: next }
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    ask(draft)
  }
  const toggle = (on: boolean, label: string, icon: React.ReactNode, run: () => void) => <IconButton label={label} aria-pressed={on} onClick={run} className={cn(on && 'bg-brand-soft text-brand')}>{icon}</IconButton>
  const n = found.data?.matches?.length ?? 0
  return (
    <aside aria-label={w.files.search} className="flex min-h-0 w-full flex-1 flex-col">
      <div className="flex h-9 shrink-0 items-center border-b pr-1.5 pl-4"><h2 className="flex-1 font-medium">{w.files.search}</h2><IconButton label={w.files.closeSearch} onClick={onClose}><X /></IconButton></div>
      <form role="search" onSubmit={submit} className="flex shrink-0 flex-col gap-1.5 border-b p-2">
        <Input autoFocus aria-label={w.files.searchFor} placeholder={w.files.searchFor} value={draft.content} onChange={(event) => change({ content: event.target.value })} onKeyDown={(event) => event.key === 'Escape' && onClose()} spellCheck={false} />
        <div className="flex items-center gap-1">
          <Input aria-label={w.files.searchIn} placeholder={w.files.searchIn} value={draft.name} onChange={(event) => change({ name: event.target.value })} className="min-w-0 flex-1 font-mono text-sm" spellCheck={false} />
          {toggle(draft.exact, w.files.exactCase, <CaseSensitive />, () => change({ exact: !draft.exact }))}
          {toggle(draft.regexp, w.files.regexp, <Regex />, () => change({ regexp: !draft.regexp }))}
          {toggle(draft.hidden, w.files.hidden, <EyeOff />, () => change({ hidden: !draft.hidden }))}
        </div>
        <button type="submit" className="sr-only">{w.files.search}</button>
      </form>
      {found.error && <div className="p-2"><Notice error={found.error} onRetry={() => found.refetch()} /></div>}
      {found.isFetching && !found.data && <Skeleton rows={6} height={26} what={w.files.search} />}
      {found.data && <p role="status" className="shrink-0 px-4 py-1.5 text-sm text-muted-foreground">{n === 0 ? w.files.nothingFound : w.files.found(n, rows.length - n)}{found.data.truncated && ` ${w.files.moreFound}`}</p>}
      <div ref={ref} tabIndex={-1} className="min-h-0 flex-1 overflow-auto">
        <ul className="relative" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((item) => {
            const row = rows[item.index]
            if (!row) return null
            return (
              <li key={item.index} className="absolute inset-x-0" style={{ transform: `translateY(${item.start}px)`, height }}>
                {row.kind === 'file' ? <p className="flex h-full items-center gap-2 px-4" title={line(path(row.name))}><span className="shrink-0 font-medium"><Text of={base(row.name)} /></span><span className="min-w-0 flex-1 truncate text-sm text-faint"><Text of={path(row.name).slice(0, -base(row.name).length - 1)} /></span><span className="text-sm text-faint">{row.n}</span></p> : (
                  <button type="button" onClick={() => onGo(row.name, row.match.line, row.match.column)} className="flex h-full w-full items-center gap-2 pr-2 pl-6 text-left font-mono text-sm hover:bg-hover"><span className="w-9 shrink-0 text-right text-faint">{row.match.line}</span><span className="min-w-0 truncate"><Match row={row} length={asked?.regexp ? 1 : (asked?.content.length ?? 1)} /></span></button>
                )}
              </li>
            )
          })}
        </ul>
      </div>
    </aside>
  )
}

const before = 24

// Match is a line, cut so that what was found is seen.
function Match({ row, length }: { row: Row & { kind: 'line' }; length: number }) {
  const bytes = new TextEncoder().encode(row.match.text)
  const at = new TextDecoder().decode(bytes.subarray(0, row.match.column - 1)).length
  const text = row.match.text
  return <>{at > before ? `…${line(text.slice(at - before, at))}` : line(text.slice(0, at).trimStart())}<mark className="bg-transparent font-semibold text-brand">{line(text.slice(at, at + length))}</mark>{line(text.slice(at + length, at + length + 200))}</>
}
