import '@xterm/xterm/css/xterm.css'
import { Link as RouterLink } from '@tanstack/react-router'
import { ChevronDown, ChevronUp, Keyboard, Search, X } from 'lucide-react'
import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { Confirm } from '@/components/confirm'
import { Notice } from '@/components/notice'
import { Button, IconButton } from '@/components/ui/button'
import { Session, type View } from '@/features/terminal/session'
import type { Operation, Place } from '@/lib/api'
import { cn } from '@/lib/cn'
import { age, size } from '@/lib/format'
import { useNow } from '@/lib/hooks'
import { visible } from '@/lib/safe'
import { useLang, useWords } from '@/lib/words'

type Props = { at: Place; id: string; op?: Operation; shown: boolean; onNew: () => void }

export function TerminalView({ at, id, op, shown, onNew }: Props) {
  const w = useWords()
  const place = useRef<HTMLDivElement>(null)
  const [link, setLink] = useState<string>()
  const [finding, setFinding] = useState(false)
  const [session] = useState(() => new Session(at, id))
  const view = useSyncExternalStore(session.subscribe, session.look)
  useEffect(() => (place.current ? session.mount(place.current, { onLink: setLink, onFind: () => setFinding(true) }) : undefined), [session])
  useEffect(() => {
    if (!shown || !view.ready) return
    session.screen?.fit()
    session.screen?.terminal.focus()
  }, [shown, session, view.ready])
  const lost = view.state === 'lost'
  return (
    <div className={cn('flex min-h-0 flex-1 flex-col', !shown && 'hidden')}>
      {view.missing > 0 && <p role="status" className="border-b bg-warn-soft px-4 py-1 text-sm">{w.terminal.missing(size(view.missing))}</p>}
      {view.problem && <div className="p-3"><Notice error={view.problem} /></div>}
      <div className="relative flex min-h-0 flex-1 bg-term">
        {finding && <Find session={session} onClose={() => { setFinding(false); session.screen?.terminal.focus() }} />}
        <div ref={place} role="region" aria-label={w.terminal.screen} className={cn('min-h-0 min-w-0 flex-1 overflow-hidden py-1 pl-2 font-mono', (lost || view.state === 'ended') && 'opacity-80')} />
        {lost && <p role="status" className="absolute inset-x-0 top-3 mx-auto w-fit rounded-md border bg-popover px-3 py-1 shadow-floating">{w.terminal.lost}</p>}
      </div>
      <Bar view={view} at={at} id={id} op={op} onNew={onNew} onFind={() => setFinding(true)} onTake={() => session.take()} />
      {link !== undefined && (
        <Confirm title={w.terminal.linkTitle} ask={<>{w.terminal.linkAsk}<span className="mt-2 block font-mono text-sm break-all text-foreground">{visible(link)}</span></>} action={w.terminal.linkDo} danger={false} onClose={() => setLink(undefined)}
          onDo={async () => { globalThis.open(link, '_blank', 'noopener,noreferrer') }} />
      )}
    </div>
  )
}

function Find({ session, onClose }: { session: Session; onClose: () => void }) {
  const w = useWords()
  const [text, setText] = useState('')
  const next = (back = false) => (back ? session.screen?.search.findPrevious(text) : session.screen?.search.findNext(text))
  return (
    <form className="absolute top-2 right-4 z-10 flex items-center gap-1 rounded-md border bg-popover p-1 shadow-floating" onSubmit={(event) => { event.preventDefault(); next() }} onKeyDown={(event) => event.key === 'Escape' && onClose()}>
      <input autoFocus aria-label={w.terminal.find} placeholder={w.terminal.find} value={text} onChange={(event) => { setText(event.target.value); session.screen?.search.findNext(event.target.value, { incremental: true }) }} className="h-7 w-48 bg-transparent px-2 outline-none" />
      <IconButton label={w.details.previous} onClick={() => next(true)}><ChevronUp /></IconButton>
      <IconButton label={w.details.next} onClick={() => next()}><ChevronDown /></IconButton>
      <IconButton label={w.act.close} onClick={onClose}><X /></IconButton>
    </form>
  )
}

type BarProps = { view: View; at: Place; id: string; op?: Operation; onNew: () => void; onFind: () => void; onTake: () => void }

// Bar says who types, and that it is recorded.
function Bar({ view, at, id, op, onNew, onFind, onTake }: BarProps) {
  const w = useWords()
  const ended = view.state === 'ended'
  return (
    <div data-terminal-bar className="flex h-9 shrink-0 items-center gap-3 border-t px-4 text-sm text-muted-foreground max-desk:h-11">
      {ended ? <span className="font-medium text-foreground">{w.terminal.ended(view.exit?.code ?? -1)}</span> : op && <Recording since={op.started_at} />}
      {!ended && view.writer === true && <span className="flex items-center gap-1.5 max-phone:hidden"><Keyboard aria-hidden className="size-4" />{w.terminal.yours}</span>}
      {!ended && view.writer === false && <><span>{w.terminal.watching}</span><Button size="sm" onClick={onTake}>{w.terminal.take}</Button></>}
      <span className="flex-1" />
      {ended && <Button size="sm" asChild><RouterLink to="/sandboxes/$connection/$sandbox/history" params={at} search={{ op: id }}>{w.terminal.inHistory}</RouterLink></Button>}
      {ended && <Button size="sm" variant="default" onClick={onNew}>{w.terminal.open}</Button>}
      <IconButton label={w.terminal.find} onClick={onFind}><Search /></IconButton>
    </div>
  )
}

function Recording({ since }: { since: string }) {
  const w = useWords()
  const lang = useLang()
  const now = useNow()
  return <span className="flex items-center gap-1.5"><span aria-hidden className="size-2 rounded-full bg-record" />{w.terminal.recording(age(Math.max(0, now - Date.parse(since)), lang))}</span>
}
