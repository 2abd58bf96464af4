import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useNavigate } from '@tanstack/react-router'
import { ChevronLeft, MoreHorizontal, Pause, Play } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { type Asking, BoxDialogs, BoxMenu, useTurn } from '@/components/box-actions'
import { Expiry } from '@/components/expiry'
import { StateGlyph } from '@/components/glyph'
import { Boundary, Notice, Skeleton } from '@/components/notice'
import { Title } from '@/components/page'
import { CopyButton, Text } from '@/components/text'
import { Button, IconButton } from '@/components/ui/button'
import { Problem, type Place, type Sandbox } from '@/lib/api'
import { isGone, nameOf } from '@/lib/box'
import { moment } from '@/lib/format'
import { useKeys } from '@/lib/hooks'
import { useMay } from '@/lib/may'
import { sandboxQuery } from '@/lib/queries'
import { visited } from '@/lib/recent'
import { line } from '@/lib/safe'
import { useLang, useWords } from '@/lib/words'

const tabs = [
  { to: '/sandboxes/$connection/$sandbox/overview', name: 'overview' }, { to: '/sandboxes/$connection/$sandbox/files', name: 'files' }, { to: '/sandboxes/$connection/$sandbox/commands', name: 'commands' },
  { to: '/sandboxes/$connection/$sandbox/terminal', name: 'terminal' }, { to: '/sandboxes/$connection/$sandbox/history', name: 'history' },
] as const

// SandboxPage is what stands around the tabs of a sandbox.
export function SandboxPage({ at }: { at: Place }) {
  const w = useWords()
  const navigate = useNavigate()
  const { data: box, error, refetch } = useQuery(sandboxQuery(at))
  const [asking, setAsking] = useState<Asking>()
  useEffect(() => {
    if (box) visited({ ...at, name: box.name ?? '' })
  }, [at.connection, at.sandbox, box?.name]) // eslint-disable-line react-hooks/exhaustive-deps -- only when it is another one
  useKeys(Object.fromEntries(tabs.map((tab, i) => [String(i + 1), () => void navigate({ to: tab.to, params: at })])))
  if (!box) {
    const gone = error instanceof Problem && error.status === 404
    return (
      <div className="flex flex-col gap-3 p-5">
        {error ? <Notice error={error} onRetry={() => refetch()} /> : <Skeleton what={at.sandbox} />}
        {gone && <Button asChild className="self-start"><Link to="/sandboxes/$connection/$sandbox/history" params={at}>{w.box.openHistory}</Link></Button>}
        {error && <Button asChild variant="ghost" className="self-start"><Link to="/sandboxes" search={{}}>{w.problem.home}</Link></Button>}
        {gone && <Outlet />}
      </div>
    )
  }
  return (
    <>
      <Title text={nameOf(box)} />
      <Head box={box} onAsk={setAsking} />
      <nav aria-label={w.tabs.label} className="flex h-9 shrink-0 gap-5 overflow-x-auto border-b px-5 max-desk:px-4">
        {tabs.map((tab) => (
          <Link key={tab.name} to={tab.to} params={at} className="-mb-px flex items-center border-b-2 border-transparent text-muted-foreground hover:text-foreground aria-[current=page]:border-foreground aria-[current=page]:font-medium aria-[current=page]:text-foreground">{w.tabs[tab.name]}</Link>
        ))}
      </nav>
      <Standing box={box} />
      <Boundary key={at.sandbox}><Outlet /></Boundary>
      {asking && <BoxDialogs boxes={[box]} asking={asking} onClose={() => setAsking(undefined)} />}
    </>
  )
}

function Head({ box, onAsk }: { box: Sandbox; onAsk: (asking: Asking) => void }) {
  const w = useWords()
  const turn = useTurn()
  const may = useMay('operator')
  const gone = isGone(box)
  return (
    <header className="flex h-[52px] shrink-0 items-center gap-2.5 px-5 max-desk:px-3">
      <Link to="/sandboxes" search={{}} className="text-muted-foreground hover:text-foreground max-desk:hidden">{w.sandboxes.title}</Link>
      <span aria-hidden className="text-faint max-desk:hidden">/</span>
      <Button asChild variant="ghost" size="icon" className="desk:hidden"><Link to="/sandboxes" search={{}} aria-label={w.act.back}><ChevronLeft /></Link></Button>
      <StateGlyph box={box} />
      <h1 className="min-w-0 truncate text-lg font-semibold"><Text of={nameOf(box)} /></h1>
      <CopyButton text={box.id} label={w.box.copyId} className="max-phone:hidden" />
      <span className="flex-1" />
      {!gone && <span className="whitespace-nowrap max-phone:hidden">{box.expires_at ? <><span className="text-muted-foreground">{w.sandboxes.expires}</span> <span className="font-medium"><Expiry box={box} /></span></> : <span className="text-muted-foreground">{w.box.noExpiry}</span>}</span>}
      {!gone && <Button size="sm" disabled={!may} onClick={() => onAsk('renew')} className="max-phone:hidden">{w.box.renew}</Button>}
      {box.state === 'Running' && !gone && <IconButton variant="outline" label={w.box.pause} disabled={!may} onClick={() => turn(box, 'pause')}><Pause /></IconButton>}
      {box.state === 'Paused' && !gone && <IconButton variant="outline" label={w.box.resume} disabled={!may} onClick={() => turn(box, 'resume')}><Play /></IconButton>}
      <BoxMenu box={box} onAsk={onAsk} turns={false} trigger={<IconButton variant="outline" label={w.sandboxes.menu(line(nameOf(box)))}><MoreHorizontal /></IconButton>} />
    </header>
  )
}

// Standing says what keeps a sandbox from being worked in.
function Standing({ box }: { box: Sandbox }) {
  const w = useWords()
  const lang = useLang()
  const turn = useTurn()
  const may = useMay('operator')
  let said: ReactNode
  if (isGone(box)) said = w.box.endedNow(box.gone_at ? moment(box.gone_at, lang) : '')
  else if (box.state === 'Failed') said = <>{w.box.failedNow} <span className="font-mono text-sm">{box.message && <Text of={box.message} />}</span></>
  else if (box.state === 'Paused') said = w.box.pausedNow
  if (!said) return null
  return (
    <div role="status" className="flex shrink-0 items-center gap-3 border-b bg-muted px-5 py-1.5 max-desk:px-4">
      <StateGlyph box={box} /><span className="min-w-0 flex-1">{said}</span>
      {box.state === 'Paused' && !isGone(box) && <Button size="sm" disabled={!may} onClick={() => turn(box, 'resume')}>{w.box.resume}</Button>}
    </div>
  )
}
