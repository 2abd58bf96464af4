import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useNavigate } from '@tanstack/react-router'
import { Box, Globe, ListTree, LogOut, type LucideIcon, PanelLeft, Plug, Search, Settings, SunMoon } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Boundary } from '@/components/notice'
import { Logo } from '@/components/logo'
import { Text } from '@/components/text'
import { Button, IconButton } from '@/components/ui/button'
import { Menu, MenuItem, MenuLine } from '@/components/ui/menu'
import { Kbd } from '@/components/ui/tag'
import { Toasts } from '@/components/ui/toast'
import { KeyList } from '@/features/frame/key-list'
import { Offline } from '@/features/frame/offline'
import { Palette } from '@/features/frame/palette'
import { send } from '@/lib/api'
import { cn } from '@/lib/cn'
import { useKeys, useMedia, usePhone } from '@/lib/hooks'
import { meQuery } from '@/lib/queries'
import { useRecent } from '@/lib/recent'
import { nextTheme, useTheme } from '@/lib/theme'
import { label, setLang, useLang, useWords } from '@/lib/words'

const places = [
  { to: '/sandboxes', icon: Box, name: 'sandboxes' },
  { to: '/history', icon: ListTree, name: 'history' },
  { to: '/connections', icon: Plug, name: 'connections' },
  { to: '/settings/account', icon: Settings, name: 'settings' },
] as const

// Frame is what stands around every screen.
export function Frame() {
  const w = useWords()
  const phone = usePhone()
  const narrow = useMedia('(max-width: 1199px)')
  const [folded, setFolded] = useState<boolean>()
  const [palette, setPalette] = useState(false)
  const [keys, setKeys] = useState(false)
  const fold = folded ?? narrow
  useKeys({ '[': () => setFolded(!fold), '?': () => setKeys(true) })
  return (
    <div className={cn('flex h-full', phone && 'flex-col-reverse')}>
      <a href="#main" className="sr-only z-60 rounded-md bg-popover px-3 py-2 focus:not-sr-only focus:fixed focus:top-2 focus:left-2">{w.skip}</a>
      <Palette open={palette} onOpen={setPalette} onKeys={() => setKeys(true)} />
      {keys && <KeyList onClose={() => setKeys(false)} />}
      {phone ? <BottomBar onSearch={() => setPalette(true)} /> : <Rail fold={fold} onFold={() => setFolded(!fold)} onSearch={() => setPalette(true)} />}
      <div className="flex min-h-0 min-w-0 flex-1 flex-col">
        <Offline />
        <main id="main" tabIndex={-1} className="flex min-h-0 flex-1 flex-col outline-none">
          <Boundary><Outlet /></Boundary>
        </main>
      </div>
      <Toasts />
    </div>
  )
}

function Rail({ fold, onFold, onSearch }: { fold: boolean; onFold: () => void; onSearch: () => void }) {
  const w = useWords()
  const recent = useRecent()
  return (
    <aside className={cn('flex min-h-0 shrink-0 flex-col border-r bg-sidebar px-2.5', fold ? 'w-[52px]' : 'w-[216px]')}>
      <div className="flex h-[52px] items-center gap-2 px-1">
        <Logo className="size-5" />
        {!fold && <span className="flex-1 text-md font-semibold">{w.app}</span>}
        {!fold && <IconButton label={w.nav.fold} onClick={onFold}><PanelLeft /></IconButton>}
      </div>
      {fold ? <IconButton label={w.nav.search} onClick={onSearch} className="mb-3 size-8"><Search /></IconButton> : (
        <button type="button" onClick={onSearch} className="mb-3 flex h-8 items-center gap-2 rounded-md border bg-background px-2 text-faint hover:border-border-strong">
          <Search className="size-3.5" /><span className="flex-1 text-left">{w.nav.search}</span><Kbd>{'Ctrl K'}</Kbd>
        </button>
      )}
      <nav aria-label={w.nav.main} className="flex flex-col gap-0.5">
        {places.map((one) => <RailLink key={one.to} {...one} text={w.nav[one.name]} fold={fold} />)}
      </nav>
      {!fold && recent.length > 0 && (
        <nav aria-label={w.nav.recent} className="mt-5 flex min-h-0 flex-col gap-0.5 overflow-hidden">
          <h2 className="px-2 pb-1 text-xs font-medium text-faint">{w.nav.recent}</h2>
          {recent.map((one) => (
            <Link
              key={`${one.connection}/${one.sandbox}`} to="/sandboxes/$connection/$sandbox/overview" params={{ connection: one.connection, sandbox: one.sandbox }}
              className="truncate rounded-md px-2 py-1 text-muted-foreground hover:bg-foreground/5 hover:text-foreground aria-[current=page]:text-foreground"
            >
              <Text of={one.name || one.sandbox} />
            </Link>
          ))}
        </nav>
      )}
      <span className="flex-1" />
      <Account fold={fold} />
    </aside>
  )
}

function RailLink({ to, icon: Icon, text, fold }: { to: (typeof places)[number]['to']; icon: LucideIcon; text: string; fold: boolean }) {
  return (
    <Link
      to={to} aria-label={text} title={fold ? text : undefined}
      className={cn('flex h-[30px] items-center gap-2.5 rounded-md px-2 text-muted-foreground hover:bg-foreground/5 hover:text-foreground aria-[current=page]:bg-foreground/8 aria-[current=page]:font-medium aria-[current=page]:text-foreground', fold && 'justify-center px-0')}
    >
      <Icon className="size-4 shrink-0" strokeWidth={1.6} />{!fold && text}
    </Link>
  )
}

function Account({ fold }: { fold: boolean }) {
  const w = useWords()
  const lang = useLang()
  const theme = useTheme()
  const { data: me } = useQuery(meQuery)
  const name = me?.user.name ?? ''
  return (
    <div className={cn('flex items-center gap-0.5 pt-2 pb-3', fold && 'flex-col')}>
      <AccountMenu>
        <button type="button" className="flex min-w-0 flex-1 items-center gap-1.5 rounded-md p-1 text-left hover:bg-foreground/5" title={name}>
          <span aria-hidden className="size-[22px] shrink-0 rounded-full bg-brand-soft text-center text-xs leading-[22px] font-semibold text-brand">{[...name][0]?.toUpperCase()}</span>
          <span className={cn('truncate', fold && 'sr-only')}><Text of={name} /></span>
        </button>
      </AccountMenu>
      <IconButton label={w.account.languageName} onClick={() => setLang(lang === 'zh' ? 'en' : 'zh')}><Globe /></IconButton>
      <IconButton label={w.account.theme(label(w.account, theme))} onClick={nextTheme}><SunMoon /></IconButton>
    </div>
  )
}

function AccountMenu({ children }: { children: ReactNode }) {
  const w = useWords()
  const navigate = useNavigate()
  const { data: me } = useQuery(meQuery)
  return (
    <Menu trigger={children} align="start">
      {me && <p className="px-2 py-1 text-sm text-muted-foreground"><Text of={me.user.name} />{' · '}{label(w.role, me.user.role)}</p>}
      <MenuLine />
      <MenuItem onSelect={() => navigate({ to: '/settings/account' })}><Settings />{w.nav.settings}</MenuItem>
      <SignOutItem />
    </Menu>
  )
}

function BottomBar({ onSearch }: { onSearch: () => void }) {
  const w = useWords()
  const lang = useLang()
  const navigate = useNavigate()
  const item = 'flex h-13 flex-1 flex-col items-center justify-center gap-0.5 text-xs text-muted-foreground aria-[current=page]:font-medium aria-[current=page]:text-foreground'
  return (
    <nav aria-label={w.nav.main} className="flex shrink-0 border-t bg-sidebar pb-[env(safe-area-inset-bottom)]">
      {places.slice(0, 2).map((one) => (
        <Link key={one.to} to={one.to} className={item}>
          <one.icon className="size-[18px]" strokeWidth={1.6} />{w.nav[one.name]}
        </Link>
      ))}
      <button type="button" className={item} onClick={onSearch}><Search className="size-[18px]" strokeWidth={1.6} />{w.nav.search}</button>
      <Menu trigger={<button type="button" className={item}><PanelLeft className="size-[18px]" strokeWidth={1.6} />{w.nav.more}</button>}>
        {places.slice(2).map((one) => <MenuItem key={one.to} onSelect={() => navigate({ to: one.to })}><one.icon />{w.nav[one.name]}</MenuItem>)}
        <MenuItem onSelect={() => setLang(lang === 'zh' ? 'en' : 'zh')}><Globe />{w.account.language}</MenuItem>
        <MenuItem onSelect={nextTheme}><SunMoon />{w.palette.theme}</MenuItem>
        <SignOutItem />
      </Menu>
    </nav>
  )
}

function SignOutItem() {
  const w = useWords()
  const client = useQueryClient()
  const navigate = useNavigate()
  return (
    <MenuItem onSelect={async () => {
      await send('POST', '/auth/sign-out').catch(() => {})
      client.clear()
      await navigate({ to: '/sign-in', search: {} })
    }}><LogOut />{w.account.signOut}</MenuItem>
  )
}

export function NotFound() {
  const w = useWords()
  return (
    <div className="flex flex-col items-center gap-3 py-20">
      <p className="text-muted-foreground">{w.problem.notFound}</p>
      <Button asChild><Link to="/sandboxes" search={{}}>{w.problem.home}</Link></Button>
    </div>
  )
}
