import { type ReactNode, useEffect } from 'react'
import { visible } from '@/lib/safe'
import { cn } from '@/lib/cn'

// Title is what the browser's tab says.
export function Title({ text }: { text: string }) {
  useEffect(() => {
    document.title = text ? `${visible(text)} · Glassbox` : 'Glassbox'
  }, [text])
  return null
}

export function PageHead({ title, note, children }: { title: string; note?: ReactNode; children?: ReactNode }) {
  return (
    <header className="flex h-[52px] shrink-0 items-center gap-3 px-5 max-desk:px-4">
      <Title text={title} />
      <h1 className="truncate text-lg font-semibold">{title}</h1>
      {note && <span className="truncate text-muted-foreground max-phone:hidden">{note}</span>}
      <span className="flex-1" />
      {children}
    </header>
  )
}

export function Bar({ children, className }: { children: ReactNode; className?: string }) {
  return <div className={cn('flex min-h-12 shrink-0 flex-wrap items-center gap-x-3 gap-y-2 border-b px-5 py-2 max-desk:px-4', className)}>{children}</div>
}
