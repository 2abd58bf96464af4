import type { ReactNode } from 'react'
import { cn } from '@/lib/cn'

const tones = { plain: 'bg-muted text-muted-foreground', fail: 'bg-fail-soft text-fail', warn: 'bg-warn-soft text-warn', deny: 'bg-deny-soft text-deny', live: 'bg-brand-soft text-brand', ok: 'bg-ok-soft text-ok' }

export function Tag({ tone = 'plain', className, children }: { tone?: keyof typeof tones; className?: string; children: ReactNode }) {
  return <span className={cn('inline-flex h-[18px] shrink-0 items-center gap-1 rounded-sm px-1.5 text-xs leading-[18px] font-medium whitespace-nowrap', tones[tone], className)}>{children}</span>
}

export function Kbd({ children }: { children: ReactNode }) {
  return <kbd className="rounded-sm border bg-background px-1 font-sans text-xs font-medium text-faint max-desk:hidden">{children}</kbd>
}

export function Segments<T extends string>({ label, value, options, onChange }: { label: string; value: T; options: { value: T; label: ReactNode }[]; onChange: (value: T) => void }) {
  return (
    <div role="group" aria-label={label} className="inline-flex shrink-0 rounded-md bg-muted p-0.5">
      {options.map((one) => (
        <button
          key={one.value} type="button" aria-pressed={one.value === value} onClick={() => onChange(one.value)}
          className={cn('h-[26px] rounded-sm px-2.5 text-sm whitespace-nowrap text-muted-foreground max-desk:h-8', one.value === value && 'bg-background font-medium text-foreground shadow-[0_1px_2px_#0000001f] dark:bg-raised')}
        >
          {one.label}
        </button>
      ))}
    </div>
  )
}
