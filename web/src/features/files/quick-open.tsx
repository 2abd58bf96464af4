import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useState } from 'react'
import { Text } from '@/components/text'
import { Dialog } from '@/components/ui/dialog'
import { type Entry, type Found, searchFiles } from '@/features/files/contents'
import { type Name, nameOf, natural } from '@/features/files/names'
import { EntryIcon } from '@/features/files/tree-view'
import { cn } from '@/lib/cn'
import type { Place } from '@/lib/api'
import { useLater } from '@/lib/hooks'
import { line } from '@/lib/safe'
import { useWords } from '@/lib/words'

const shown = 50

// pattern finds names that hold what was typed, in any case; who types a
// pattern gets that.
function pattern(text: string): string {
  if (/[*?[{]/.test(text)) return text
  const part = (one: string) => `*${one.replace(/[\\[\]{}*?]/g, '\\$&').replace(/\p{L}/gu, (letter) => (letter.toLowerCase() === letter.toUpperCase() ? letter : `[${letter.toLowerCase()}${letter.toUpperCase()}]`))}*`
  const parts = text.split('/').filter(Boolean).map(part)
  return parts.length > 1 ? `**/${parts.join('/')}` : (parts[0] ?? '*')
}

// ranked: names that begin so, then short paths.
function ranked(list: Entry[], text: string): Entry[] {
  const low = text.toLowerCase()
  const rank = (one: Entry) => (one.name.toLowerCase() === low ? 0 : one.name.toLowerCase().startsWith(low) ? 1 : 2)
  return list.filter((one) => one.type !== 'directory').sort((a, b) => rank(a) - rank(b) || a.path.length - b.path.length || natural(a.path, b.path))
}

// QuickOpen opens a file by its name.
export function QuickOpen({ at, home, onShow, onClose }: { at: Place; home: Name; onShow: (name: Name) => void; onClose: () => void }) {
  const w = useWords()
  const [text, setText] = useState('')
  const later = useLater(text.trim(), 200)
  const [on, setOn] = useState(0)
  const found = useQuery<Found>({ queryKey: ['files', at.connection, at.sandbox, 'names', home, later], enabled: later !== '', retry: false, staleTime: 10_000, placeholderData: (before) => before, queryFn: ({ signal }) => searchFiles(at, home, { name: pattern(later), hidden: 'true', limit: 1000 }, signal) })
  const list = later === '' ? [] : ranked(found.data?.entries ?? [], later).slice(0, shown)
  const open = (entry?: Entry) => {
    if (!entry) return
    onShow(nameOf(entry))
    onClose()
  }
  const pressed = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      setOn(Math.max(0, Math.min(list.length - 1, on + (event.key === 'ArrowDown' ? 1 : -1))))
    } else if (event.key === 'Enter') {
      event.preventDefault()
      open(list[on])
    }
  }
  return (
    <Dialog open onClose={onClose} title={w.files.quickOpen} hideTitle className="w-[560px] overflow-hidden">
      <input autoFocus role="combobox" aria-expanded aria-controls="quick-open" aria-activedescendant={list[on] ? `quick-${on}` : undefined} aria-label={w.files.quickOpen} placeholder={w.files.quickOpen} value={text} onChange={(event) => { setText(event.target.value); setOn(0) }} onKeyDown={pressed} autoComplete="off" spellCheck={false} className="h-12 w-full border-b bg-transparent px-4 outline-none" />
      <div id="quick-open" role="listbox" aria-label={w.files.quickOpen} className="max-h-[50vh] overflow-y-auto p-1">
        {list.map((entry, i) => (
          <div key={nameOf(entry)} id={`quick-${i}`} role="option" aria-selected={i === on} onMouseEnter={() => setOn(i)} onClick={() => open(entry)} className={cn('flex h-8 cursor-default items-center gap-2 rounded-md px-3 text-base', i === on && 'bg-selected')}>
            <EntryIcon entry={entry} /><span className="shrink-0 truncate"><Text of={entry.name} /></span><span className="min-w-0 flex-1 truncate text-right text-sm text-faint" dir="rtl"><bdi>{line(entry.path.slice(0, -entry.name.length - 1))}</bdi></span>
          </div>
        ))}
      </div>
      {later !== '' && !found.isFetching && list.length === 0 && <p className="px-4 pb-3 text-muted-foreground">{found.error ? line(found.error.message) : w.files.nothingNamed}</p>}
      {found.data?.truncated && <p className="px-4 pb-2 text-sm text-faint">{w.files.moreFound}</p>}
    </Dialog>
  )
}
