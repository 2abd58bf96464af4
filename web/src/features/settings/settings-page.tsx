import { Link, Outlet } from '@tanstack/react-router'
import { PageHead } from '@/components/page'
import { useMay } from '@/lib/may'
import { useWords } from '@/lib/words'

const parts = [
  { to: '/settings/account', name: 'account', admin: false }, { to: '/settings/sessions', name: 'signIns', admin: false },
  { to: '/settings/tokens', name: 'tokens', admin: false }, { to: '/settings/users', name: 'users', admin: true },
] as const

export function SettingsPage() {
  const w = useWords()
  const admin = useMay('admin')
  return (
    <>
      <PageHead title={w.settings.title} />
      <nav aria-label={w.settings.parts} className="flex h-9 shrink-0 gap-5 overflow-x-auto border-b px-5 max-desk:px-4">
        {parts.filter((part) => admin || !part.admin).map((part) => (
          <Link key={part.to} to={part.to} className="-mb-px flex items-center border-b-2 border-transparent whitespace-nowrap text-muted-foreground hover:text-foreground aria-[current=page]:border-foreground aria-[current=page]:font-medium aria-[current=page]:text-foreground">{w.settings[part.name]}</Link>
        ))}
      </nav>
      <div className="min-h-0 flex-1 overflow-y-auto"><div className="flex max-w-[760px] flex-col gap-5 px-5 py-5 max-desk:px-4"><Outlet /></div></div>
    </>
  )
}
