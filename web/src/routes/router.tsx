import { type QueryClient, useQuery } from '@tanstack/react-query'
import { Outlet, createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { Suspense } from 'react'
import { Fault, Skeleton } from '@/components/notice'
import { PageHead } from '@/components/page'
import { ConnectionsPage } from '@/features/connections/connections-page'
import { Frame, NotFound } from '@/features/frame/frame'
import { History } from '@/features/history/history-page'
import { type HistorySearch, readSearch } from '@/features/history/filter'
import { type FilesSearch, readFilesSearch } from '@/features/files/search'
import { Overview } from '@/features/sandbox/overview'
import { SandboxPage } from '@/features/sandbox/sandbox-page'
import { SandboxesPage } from '@/features/sandboxes/sandboxes-page'
import { type SandboxSearch, readSandboxSearch } from '@/features/sandboxes/search'
import { Account } from '@/features/settings/account'
import { SettingsPage } from '@/features/settings/settings-page'
import { SignIns } from '@/features/settings/sign-ins'
import { Tokens } from '@/features/settings/tokens'
import { Users } from '@/features/settings/users'
import { SignInPage } from '@/features/sign-in/sign-in-page'
import { Problem } from '@/lib/api'
import { isRunning } from '@/lib/box'
import { meQuery, sandboxQuery } from '@/lib/queries'
import { useWords } from '@/lib/words'

const root = createRootRouteWithContext<{ client: QueryClient }>()({ component: Outlet, notFoundComponent: NotFound })

const signIn = createRoute({
  getParentRoute: () => root, path: '/sign-in', component: SignInScreen,
  // Only a path of this page leads back to it.
  validateSearch: (given: Record<string, unknown>): { next?: string } => (typeof given.next === 'string' && /^\/(?![/\\])/.test(given.next) ? { next: given.next } : {}),
})

const frame = createRoute({
  getParentRoute: () => root, id: 'frame', component: Frame,
  errorComponent: ({ error, reset }) => <Fault fault={error} onRetry={reset} />,
  beforeLoad: async ({ context, location }) => {
    try {
      await context.client.ensureQueryData(meQuery)
    } catch (error) {
      if (error instanceof Problem && error.status === 401) throw redirect({ to: '/sign-in', search: { next: location.href } })
    }
  },
})

const home = createRoute({ getParentRoute: () => frame, path: '/', beforeLoad: () => { throw redirect({ to: '/sandboxes', search: {} }) } })
const sandboxes = createRoute({ getParentRoute: () => frame, path: '/sandboxes', validateSearch: readSandboxSearch, component: SandboxesScreen })
const history = createRoute({ getParentRoute: () => frame, path: '/history', validateSearch: readSearch, component: HistoryScreen })
const connections = createRoute({ getParentRoute: () => frame, path: '/connections', component: ConnectionsPage })

const tabs = ['overview', 'files', 'commands', 'terminal', 'history']
const box = createRoute({ getParentRoute: () => frame, path: '/sandboxes/$connection/$sandbox', component: SandboxScreen })
const boxIndex = createRoute({
  getParentRoute: () => box, path: '/', validateSearch: (given: Record<string, unknown>): { tab?: string } => (typeof given.tab === 'string' ? { tab: given.tab } : {}),
  beforeLoad: ({ params, search }) => {
    if (search.tab === 'files') throw redirect({ to: '/sandboxes/$connection/$sandbox/files', params, search: {} })
    if (search.tab === 'commands') throw redirect({ to: '/sandboxes/$connection/$sandbox/commands', params, search: {} })
    if (search.tab === 'terminal') throw redirect({ to: '/sandboxes/$connection/$sandbox/terminal', params, search: {} })
    throw redirect(search.tab === 'history' || !tabs.includes(search.tab ?? '') && search.tab ? { to: '/sandboxes/$connection/$sandbox/history', params, search: {} } : { to: '/sandboxes/$connection/$sandbox/overview', params })
  },
})
const boxOverview = createRoute({ getParentRoute: () => box, path: '/overview', component: OverviewScreen })
const boxFiles = createRoute({
  getParentRoute: () => box, path: '/files', validateSearch: readFilesSearch, component: BoxFilesScreen,
})
const readId = (given: Record<string, unknown>): { id?: string } => (typeof given.id === 'string' ? { id: given.id.slice(0, 128) } : {})
const boxCommands = createRoute({ getParentRoute: () => box, path: '/commands', validateSearch: readId, component: BoxCommandsScreen })
const boxTerminal = createRoute({ getParentRoute: () => box, path: '/terminal', validateSearch: readId, component: BoxTerminalScreen })
const boxHistory = createRoute({ getParentRoute: () => box, path: '/history', validateSearch: readSearch, component: BoxHistoryScreen })

const permalink = createRoute({
  getParentRoute: () => frame, path: '/o/$connection/$sandbox/$operation',
  beforeLoad: ({ params: { operation, ...params } }) => { throw redirect({ to: '/sandboxes/$connection/$sandbox/history', params, search: { op: operation } }) },
})

const settings = createRoute({ getParentRoute: () => frame, path: '/settings', component: SettingsPage })
const settingsIndex = createRoute({ getParentRoute: () => settings, path: '/', beforeLoad: () => { throw redirect({ to: '/settings/account' }) } })
const account = createRoute({ getParentRoute: () => settings, path: '/account', component: Account })
const signIns = createRoute({ getParentRoute: () => settings, path: '/sessions', component: SignIns })
const tokens = createRoute({ getParentRoute: () => settings, path: '/tokens', component: Tokens })
const users = createRoute({ getParentRoute: () => settings, path: '/users', component: Users })

const tree = root.addChildren([signIn, frame.addChildren([
  home, sandboxes, history, connections, permalink, box.addChildren([boxIndex, boxOverview, boxFiles, boxCommands, boxTerminal, boxHistory]), settings.addChildren([settingsIndex, account, signIns, tokens, users]),
])])

export function newRouter(client: QueryClient) {
  return createRouter({ routeTree: tree, context: { client }, defaultPreload: false, scrollRestoration: false, defaultErrorComponent: ({ error, reset }) => <Fault fault={error} onRetry={reset} /> })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof newRouter>
  }
}

function SignInScreen() {
  const { next } = signIn.useSearch()
  const navigate = signIn.useNavigate()
  return <SignInPage onIn={() => void navigate(next ? { href: next } : { to: '/sandboxes', search: {} })} />
}

function SandboxesScreen() {
  const navigate = sandboxes.useNavigate()
  return <SandboxesPage search={sandboxes.useSearch()} onSearch={(change: SandboxSearch, replace = false) => void navigate({ search: (old) => ({ ...old, ...change }), replace })} />
}

function HistoryScreen() {
  const w = useWords()
  const navigate = history.useNavigate()
  return (
    <>
      <PageHead title={w.history.title} />
      <History search={history.useSearch()} onSearch={(change: HistorySearch, replace = false) => void navigate({ search: (old) => ({ ...old, ...change }), replace })} />
    </>
  )
}

function SandboxScreen() {
  const { connection, sandbox } = box.useParams()
  return <SandboxPage key={`${connection}/${sandbox}`} at={{ connection, sandbox }} />
}

function OverviewScreen() {
  const { connection, sandbox } = boxOverview.useParams()
  return <Overview at={{ connection, sandbox }} />
}

// The files come with the tab that shows them, the editor with the first text.
const Files = lazyRouteComponent(() => import('@/features/files/files-page'), 'Files')

function BoxFilesScreen() {
  const { connection, sandbox } = boxFiles.useParams()
  const navigate = boxFiles.useNavigate()
  const { data } = useQuery(sandboxQuery({ connection, sandbox }))
  return (
    <Suspense fallback={<Skeleton rows={14} height={26} />}>
      <Files at={{ connection, sandbox }} running={isRunning(data)} search={boxFiles.useSearch()} onSearch={(change: FilesSearch, replace = false) => void navigate({ search: (old) => ({ ...old, ...change }), replace })} />
    </Suspense>
  )
}

const Commands = lazyRouteComponent(() => import('@/features/commands/commands-page'), 'Commands')

function BoxCommandsScreen() {
  const { connection, sandbox } = boxCommands.useParams()
  const navigate = boxCommands.useNavigate()
  const { data } = useQuery(sandboxQuery({ connection, sandbox }))
  return (
    <Suspense fallback={<Skeleton rows={14} height={32} />}>
      <Commands at={{ connection, sandbox }} running={isRunning(data)} search={boxCommands.useSearch()} onSearch={(search, replace = false) => void navigate({ search, replace })} />
    </Suspense>
  )
}

const Terminals = lazyRouteComponent(() => import('@/features/terminal/terminals-page'), 'Terminals')

function BoxTerminalScreen() {
  const { connection, sandbox } = boxTerminal.useParams()
  const navigate = boxTerminal.useNavigate()
  const { data } = useQuery(sandboxQuery({ connection, sandbox }))
  return (
    <Suspense fallback={<Skeleton rows={14} height={32} />}>
      <Terminals at={{ connection, sandbox }} running={isRunning(data)} search={boxTerminal.useSearch()} onSearch={(search, replace = false) => void navigate({ search, replace })} />
    </Suspense>
  )
}

function BoxHistoryScreen() {
  const { connection, sandbox } = boxHistory.useParams()
  const navigate = boxHistory.useNavigate()
  const { data } = useQuery(sandboxQuery({ connection, sandbox }))
  return <History scope={{ connection, sandbox }} follow={isRunning(data)} search={boxHistory.useSearch()} onSearch={(change: HistorySearch, replace = false) => void navigate({ search: (old) => ({ ...old, ...change }), replace })} />
}
