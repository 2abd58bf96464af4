import { ArrowDownUp, Download, Eye, EyeOff, ListTree, Search, X } from 'lucide-react'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { Bar } from '@/components/page'
import { Button } from '@/components/ui/button'
import { Menu, MenuItem } from '@/components/ui/menu'
import { Kbd } from '@/components/ui/tag'
import { type HistorySearch, filterNames, groupings, readTyped } from '@/features/history/filter'
import { cn } from '@/lib/cn'
import { moment } from '@/lib/format'
import { useKeys } from '@/lib/hooks'
import type { LiveState } from '@/lib/live'
import { line } from '@/lib/safe'
import { useLang, useWords } from '@/lib/words'

type Props = { search: HistorySearch; onSearch: (change: HistorySearch) => void; live: LiveState; sandboxName: (key: string) => string; onExport: () => void }

// FilterBar holds the filters, which stand in the address.
export function FilterBar({ search, onSearch, live, sandboxName, onExport }: Props) {
  const w = useWords()
  const lang = useLang()
  const [text, setText] = useState(search.q ?? '')
  const [known, setKnown] = useState(search.q)
  const input = useRef<HTMLInputElement>(null)
  if (known !== search.q) { // somebody went back, or cleared it
    setKnown(search.q)
    setText(search.q ?? '')
  }
  const group = search.group ?? 'run'
  const failures = search.status === 'failed'
  useKeys({
    '/': () => input.current?.focus(), f: () => onSearch({ status: failures ? undefined : 'failed' }), o: () => onSearch({ order: search.order ? undefined : 'oldest' }),
    g: () => onSearch({ group: groupings[(groupings.indexOf(group) + 1) % groupings.length] }), '.': () => onSearch({ live: search.live === false ? undefined : false }),
  })
  const apply = (given: string) => {
    const typed = readTyped(given)
    setKnown(typed.q)
    setText(typed.q ?? '')
    onSearch({ ...typed, q: typed.q })
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    apply(text)
  }
  // A pause says that a word is whole; name:value waits for Enter.
  useEffect(() => {
    if (text.trim() === (search.q ?? '') || text.includes(':')) return
    const timer = setTimeout(() => onSearch({ q: text.trim() || undefined }), 350)
    return () => clearTimeout(timer)
  })
  const show = (name: (typeof filterNames)[number], value: string) => (name === 'since' || name === 'until' ? moment(value, lang) : name === 'sandbox' ? sandboxName(value) : value)
  return (
    <Bar>
      <form role="search" onSubmit={submit} className="flex min-h-[30px] min-w-0 flex-[1_1_380px] flex-wrap items-center gap-1.5 rounded-md border border-input bg-background px-2 py-0.5 focus-within:border-ring focus-within:ring-1 focus-within:ring-ring max-desk:min-h-9">
        <Search className="size-3.5 shrink-0 text-faint" aria-hidden />
        {filterNames.filter((name) => search[name]).map((name) => (
          <span key={name} className="inline-flex h-[22px] max-w-56 items-center gap-1 rounded-sm bg-muted pl-1.5 text-sm">
            <span className="text-muted-foreground">{w.history.filter[name]}</span><bdi className="truncate">{line(show(name, search[name] ?? ''))}</bdi>
            <button type="button" aria-label={w.history.removeFilter(w.history.filter[name])} onClick={() => onSearch({ [name]: undefined })} className="grid size-6 shrink-0 place-items-center text-muted-foreground hover:text-foreground"><X className="size-3" /></button>
          </span>
        ))}
        <input ref={input} type="text" enterKeyHint="search" aria-label={w.history.search} title={w.history.searchHint} placeholder={w.history.search} value={text} onChange={(event) => setText(event.target.value)} onKeyDown={(event) => event.key === 'Escape' && input.current?.blur()} className="h-6 min-w-24 flex-1 bg-transparent outline-none" />
        <Kbd>/</Kbd>
      </form>
      <div className="flex items-center gap-1 max-desk:w-full max-desk:overflow-x-auto">
        <Toggle on={failures} onClick={() => onSearch({ status: failures ? undefined : 'failed' })}>{w.history.failures}</Toggle>
        <Toggle on={Boolean(search.reads)} onClick={() => onSearch({ reads: search.reads ? undefined : true })} title={search.reads ? w.history.readsShown : w.history.readsHidden}>{search.reads ? <Eye /> : <EyeOff />}{w.history.reads}</Toggle>
        <Menu trigger={<Button variant="ghost"><ListTree />{w.history.groups[group]}</Button>}>
          {groupings.map((one) => <MenuItem key={one} checked={one === group} onSelect={() => onSearch({ group: one === 'run' ? undefined : one })}>{w.history.groups[one]}</MenuItem>)}
        </Menu>
        <Button variant="ghost" onClick={() => onSearch({ order: search.order ? undefined : 'oldest' })}><ArrowDownUp />{search.order ? w.history.oldest : w.history.newest}</Button>
        <Button variant="ghost" onClick={onExport}><Download />{w.history.export}</Button>
        <LiveSwitch on={search.live !== false} state={live} onChange={(on) => onSearch({ live: on ? undefined : false })} />
      </div>
    </Bar>
  )
}

function Toggle({ on, ...rest }: { on: boolean } & React.ComponentProps<typeof Button>) {
  return <Button variant="ghost" aria-pressed={on} className={cn(on && 'bg-brand-soft text-brand hover:bg-brand-soft hover:text-brand')} {...rest} />
}

function LiveSwitch({ on, state, onChange }: { on: boolean; state: LiveState; onChange: (on: boolean) => void }) {
  const w = useWords()
  const lost = on && state === 'connecting'
  return (
    <button type="button" role="switch" aria-checked={on} aria-label={w.history.follow} title={lost ? w.live.lost : on ? w.live.on : w.live.off} onClick={() => onChange(!on)} className="flex h-[30px] shrink-0 items-center gap-2 rounded-md px-2 font-medium text-muted-foreground hover:text-foreground">
      <span aria-hidden className={cn('relative h-4 w-[26px] rounded-full border', on ? (lost ? 'border-dashed border-brand bg-transparent' : 'border-brand bg-brand') : 'border-input bg-input')}>
        <span className={cn('absolute top-px size-3 rounded-full', on ? 'left-[11px]' : 'left-px', lost ? 'bg-brand' : 'bg-background')} />
      </span>
      {w.live.on}
    </button>
  )
}
