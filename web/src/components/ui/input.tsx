import { type ComponentProps, type ReactNode, useId } from 'react'
import { cn } from '@/lib/cn'

const box = 'w-full rounded-md border border-input bg-background px-2.5 outline-none focus-visible:border-ring focus-visible:ring-1 focus-visible:ring-ring disabled:opacity-60'

export function Input({ className, ...rest }: ComponentProps<'input'>) {
  return <input className={cn(box, 'h-[30px] max-desk:h-9', className)} {...rest} />
}

export function TextArea({ className, ...rest }: ComponentProps<'textarea'>) {
  return <textarea className={cn(box, 'min-h-16 py-1.5 font-mono text-sm', className)} {...rest} />
}

export function Select({ className, ...rest }: ComponentProps<'select'>) {
  return <select className={cn(box, 'h-[30px] max-desk:h-9', className)} {...rest} />
}

export function Checkbox({ className, ...rest }: Omit<ComponentProps<'input'>, 'type'>) {
  return (
    <input
      type="checkbox"
      className={cn('size-3.5 shrink-0 appearance-none rounded-[3px] border border-input bg-background checked:border-brand checked:bg-brand checked:shadow-[inset_0_0_0_2.5px_var(--background)] indeterminate:bg-muted-foreground indeterminate:shadow-[inset_0_0_0_4px_var(--background)]', className)}
      {...rest}
    />
  )
}

// Field names a control, and says what is wrong with it.
export function Field({ label, hint, wrong, children }: { label: string; hint?: ReactNode; wrong?: string; children: (ids: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }) => ReactNode }) {
  const id = useId()
  const told = wrong || hint
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="text-base font-medium">{label}</label>
      {children({ id, 'aria-describedby': told ? `${id}-hint` : undefined, 'aria-invalid': wrong ? true : undefined })}
      {told && <p id={`${id}-hint`} className={cn('text-sm', wrong ? 'text-fail' : 'text-muted-foreground')}>{told}</p>}
    </div>
  )
}
