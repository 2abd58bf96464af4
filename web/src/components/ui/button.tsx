import { type VariantProps, cva } from 'class-variance-authority'
import { Slot } from 'radix-ui'
import type { ComponentProps } from 'react'
import { cn } from '@/lib/cn'

const look = cva(
  'inline-flex shrink-0 items-center justify-center gap-1.5 rounded-md border font-medium whitespace-nowrap transition-colors duration-75 disabled:cursor-not-allowed disabled:opacity-50 [&_svg]:size-[15px] [&_svg]:shrink-0',
  {
    variants: {
      variant: {
        default: 'border-primary bg-primary text-primary-foreground hover:opacity-88',
        outline: 'border-border bg-background hover:border-border-strong hover:bg-hover',
        ghost: 'border-transparent text-muted-foreground hover:bg-foreground/6 hover:text-foreground',
        destructive: 'border-fail bg-fail text-background hover:opacity-88',
      },
      size: { default: 'h-[30px] px-2.5 max-desk:h-9 max-desk:px-3', sm: 'h-[26px] px-2 text-sm max-desk:h-9', icon: 'size-7 max-desk:size-9' },
    },
    defaultVariants: { variant: 'outline', size: 'default' },
  },
)

export function Button({ className, variant, size, asChild, type = 'button', ...rest }: ComponentProps<'button'> & VariantProps<typeof look> & { asChild?: boolean }) {
  const As = asChild ? Slot.Root : 'button'
  return <As {...(asChild ? {} : { type })} className={cn(look({ variant, size }), className)} {...rest} />
}

export function IconButton({ label, ...rest }: { label: string } & ComponentProps<typeof Button>) {
  return <Button variant="ghost" size="icon" aria-label={label} title={label} {...rest} />
}
