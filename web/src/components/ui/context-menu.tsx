import { ContextMenu as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { Kbd } from '@/components/ui/tag'
import { cn } from '@/lib/cn'

// ContextMenu opens where the right button, a long press or the menu key asks.
export function ContextMenu({ children, items, onOpen }: { children: ReactNode; items: ReactNode; onOpen?: (open: boolean) => void }) {
  return (
    <Radix.Root modal={false} onOpenChange={onOpen}>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content collisionPadding={8} className="z-50 max-h-(--radix-context-menu-content-available-height) min-w-52 overflow-y-auto rounded-lg border bg-popover p-1 shadow-floating">{items}</Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

type ItemProps = { children: ReactNode; onSelect?: () => void; danger?: boolean; disabled?: boolean; keys?: string }

export function ContextItem({ children, onSelect, danger, disabled, keys }: ItemProps) {
  return (
    <Radix.Item
      onSelect={onSelect} disabled={disabled}
      className={cn('flex h-[28px] cursor-default items-center gap-2 rounded-md px-2 outline-none select-none data-disabled:opacity-50 data-highlighted:bg-foreground/8 max-desk:h-9 [&_svg]:size-[15px]', danger && 'text-fail')}
    >
      {children}<span className="flex-1" />{keys && <Kbd>{keys}</Kbd>}
    </Radix.Item>
  )
}

export const ContextLine = () => <Radix.Separator className="my-1 h-px bg-border" />
