import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Box, Globe, Keyboard, ListTree, type LucideIcon, Plug, Plus, Search, Settings, SunMoon } from 'lucide-react'
import { useEffect, useEffectEvent, useState } from 'react'
import { Dialog } from '@/components/ui/dialog'
import { cn } from '@/lib/cn'
import { sandboxesQuery } from '@/lib/queries'
import { line } from '@/lib/safe'
import { nextTheme } from '@/lib/theme'
import { setLang, useLang, useWords } from '@/lib/words'

type Entry = { key: string; icon: LucideIcon; text: string; kind: string; run: () => unknown }

type Props = { open: boolean; onOpen: (open: boolean) => void; onKeys: () => void }

// Palette finds sandboxes, pages and actions by their name: Ctrl K.
export function Palette({ open, onOpen, onKeys }: Props) {
  const w = useWords()
  const pressed = useEffectEvent((event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault()
      onOpen(!open)
    }
  })
  useEffect(() => {
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])
  return (
    <Dialog open={open} onClose={() => onOpen(false)} title={w.palette.title} hideTitle className="w-[560px]">
      {open && <Finder onDone={() => onOpen(false)} onKeys={onKeys} />}
    </Dialog>
  )
}

function useEntries(q: string, onKeys: () => void): Entry[] {
  const w = useWords()
  const lang = useLang()
  const navigate = useNavigate()
  const { data } = useInfiniteQuery(sandboxesQuery)
  const pages: Entry[] = [
    { key: 'sandboxes', icon: Box, text: w.nav.sandboxes, kind: w.palette.page, run: () => navigate({ to: '/sandboxes', search: {} }) },
    { key: 'history', icon: ListTree, text: w.nav.history, kind: w.palette.page, run: () => navigate({ to: '/history', search: {} }) },
    { key: 'connections', icon: Plug, text: w.nav.connections, kind: w.palette.page, run: () => navigate({ to: '/connections' }) },
    { key: 'settings', icon: Settings, text: w.nav.settings, kind: w.palette.page, run: () => navigate({ to: '/settings/account' }) },
  ]
  const actions: Entry[] = [
    { key: 'create', icon: Plus, text: w.sandboxes.create, kind: w.palette.action, run: () => navigate({ to: '/sandboxes', search: { create: true } }) },
    { key: 'theme', icon: SunMoon, text: w.palette.theme, kind: w.palette.action, run: nextTheme },
    { key: 'language', icon: Globe, text: w.palette.language, kind: w.palette.action, run: () => setLang(lang === 'zh' ? 'en' : 'zh') },
    { key: 'keys', icon: Keyboard, text: w.palette.keys, kind: w.palette.action, run: onKeys },
  ]
  const boxes: Entry[] = (data?.pages ?? []).flatMap((page) => page.items).map((box) => ({
    key: `${box.connection}/${box.id}`, icon: Box, text: box.name || box.id, kind: w.palette.sandbox,
    run: () => navigate({ to: '/sandboxes/$connection/$sandbox/overview', params: { connection: box.connection, sandbox: box.id } }),
  }))
  const text = q.trim().toLowerCase()
  if (!text) return [...boxes.slice(0, 5), ...pages, ...actions]
  const found = [...boxes, ...pages, ...actions].filter((one) => one.text.toLowerCase().includes(text) || one.key.toLowerCase().includes(text)).slice(0, 30)
  return [...found, { key: 'search', icon: Search, text: w.palette.searchAll(q.trim()), kind: w.nav.history, run: () => navigate({ to: '/history', search: { q: q.trim() } }) }]
}

function Finder({ onDone, onKeys }: { onDone: () => void; onKeys: () => void }) {
  const w = useWords()
  const [q, setQ] = useState('')
  const [at, setAt] = useState(0)
  const entries = useEntries(q, onKeys)
  const now = Math.min(at, entries.length - 1)
  const run = (entry: Entry | undefined) => {
    onDone()
    entry?.run()
  }
  return (
    <>
      <div className="flex items-center gap-2 border-b px-4">
        <Search className="size-4 text-faint" aria-hidden />
        <input
          autoFocus role="combobox" aria-expanded aria-controls="palette-list" aria-activedescendant={`palette-${now}`} aria-label={w.palette.title} value={q} placeholder={w.palette.placeholder}
          className="h-11 flex-1 bg-transparent text-md outline-none"
          onChange={(event) => {
            setQ(event.target.value)
            setAt(0)
          }}
          onKeyDown={(event) => {
            if (event.key === 'ArrowDown') setAt(Math.min(now + 1, entries.length - 1))
            else if (event.key === 'ArrowUp') setAt(Math.max(now - 1, 0))
            else if (event.key === 'Enter' && !event.nativeEvent.isComposing) run(entries[now])
            else return
            event.preventDefault()
          }}
        />
      </div>
      <div id="palette-list" role="listbox" aria-label={w.palette.title} className="min-h-0 overflow-y-auto p-1.5">
        {entries.map((one, i) => (
          <div
            key={one.key} id={`palette-${i}`} role="option" aria-selected={i === now} onClick={() => run(one)} onMouseMove={() => setAt(i)}
            ref={(element) => { if (i === now) element?.scrollIntoView({ block: 'nearest' }) }}
            className={cn('flex h-9 cursor-default items-center gap-2.5 rounded-md px-2.5', i === now && 'bg-foreground/8')}
          >
            <one.icon className="size-4 shrink-0 text-muted-foreground" strokeWidth={1.6} aria-hidden />
            <bdi className="min-w-0 flex-1 truncate">{line(one.text)}</bdi>
            <span className="text-sm text-faint">{one.kind}</span>
          </div>
        ))}
      </div>
    </>
  )
}
