import { DropdownMenu as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { cn } from '@/lib/cn'

export function Menu({ trigger, children, align = 'end' }: { trigger: ReactNode; children: ReactNode; align?: 'start' | 'end' }) {
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content align={align} sideOffset={4} collisionPadding={8} className="z-50 min-w-44 rounded-lg border bg-popover p-1 shadow-floating">
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

type ItemProps = { children: ReactNode; onSelect?: () => void; danger?: boolean; disabled?: boolean; title?: string; checked?: boolean }

export function MenuItem({ children, onSelect, danger, disabled, title, checked }: ItemProps) {
  return (
    <Radix.Item
      onSelect={onSelect} disabled={disabled} title={title} aria-current={checked || undefined}
      className={cn(
        'flex h-[30px] cursor-default items-center gap-2 rounded-md px-2 outline-none select-none data-disabled:opacity-50 data-highlighted:bg-foreground/8 max-desk:h-9 [&_svg]:size-[15px]',
        danger && 'text-fail', checked && 'font-medium text-brand',
      )}
    >
      {children}
    </Radix.Item>
  )
}

export const MenuLine = () => <Radix.Separator className="my-1 h-px bg-border" />
