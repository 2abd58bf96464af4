import { X } from 'lucide-react'
import { Dialog as Radix } from 'radix-ui'
import type { ReactNode } from 'react'
import { IconButton } from '@/components/ui/button'
import { cn } from '@/lib/cn'
import { useWords } from '@/lib/words'

type Props = { open: boolean; onClose: () => void; title: ReactNode; children: ReactNode; side?: boolean; className?: string; hideTitle?: boolean }

// Dialog is a question in the middle, or a panel at the side.
export function Dialog({ open, onClose, title, children, side, className, hideTitle }: Props) {
  const w = useWords()
  return (
    <Radix.Root open={open} onOpenChange={(on) => on || onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-overlay" />
        <Radix.Content
          aria-describedby={undefined}
          className={cn(
            'fixed z-50 flex flex-col bg-popover text-md shadow-floating outline-none',
            side ? 'inset-y-0 right-0 w-[480px] max-w-full border-l' : 'top-[14vh] left-1/2 max-h-[80vh] w-[460px] max-w-[calc(100vw-32px)] -translate-x-1/2 rounded-lg border',
            className,
          )}
        >
          <div className={cn('flex items-center gap-2 px-5 pt-4 pb-1', hideTitle && 'sr-only')}>
            <Radix.Title className="min-w-0 flex-1 truncate text-lg font-semibold">{title}</Radix.Title>
            <IconButton label={w.act.close} onClick={onClose}><X /></IconButton>
          </div>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

export function DialogBody({ children }: { children: ReactNode }) {
  return <div className="flex min-h-0 flex-1 flex-col gap-3 overflow-y-auto px-5 py-3">{children}</div>
}

export function DialogFoot({ children }: { children: ReactNode }) {
  return <div className="flex items-center justify-end gap-2 px-5 pt-2 pb-4">{children}</div>
}
