import { File, X } from 'lucide-react'
import { Text } from '@/components/text'
import { IconButton } from '@/components/ui/button'
import type { Doc } from '@/features/files/desk'
import { type Name, base, path } from '@/features/files/names'
import { cn } from '@/lib/cn'
import { line } from '@/lib/safe'
import { useWords } from '@/lib/words'

type Props = { docs: readonly Doc[]; current: Name; onShow: (name: Name) => void; onClose: (name: Name) => void }

// Tabs are the open files; what is not saved has a mark.
export function Tabs({ docs, current, onShow, onClose }: Props) {
  const w = useWords()
  if (docs.length === 0) return null
  const shown = docs.filter((doc) => doc.kind !== 'directory')
  return (
    <nav aria-label={w.files.open} className="flex h-9 shrink-0 overflow-x-auto border-b bg-sidebar">
      {shown.map((doc) => {
        const on = doc.name === current
        return (
          <div key={doc.name} className={cn('group flex max-w-56 shrink-0 items-center gap-1 border-r pr-1 text-muted-foreground', on && 'bg-background text-foreground')} onAuxClick={(event) => event.button === 1 && onClose(doc.name)}>
            <button type="button" aria-current={on ? 'page' : undefined} onClick={() => onShow(doc.name)} title={line(path(doc.name))} className="flex h-full min-w-0 items-center gap-1.5 pl-3">
              <File aria-hidden className="size-3.5 shrink-0" strokeWidth={1.6} /><span className="truncate"><Text of={base(doc.name)} /></span>
              {doc.dirty && <span role="img" aria-label={w.files.unsaved} title={w.files.unsaved} className="size-[7px] shrink-0 rounded-full bg-brand" />}
            </button>
            <IconButton label={w.files.close(line(base(doc.name)))} onClick={() => onClose(doc.name)} className={cn('size-6 max-desk:size-9', !on && 'opacity-0 group-hover:opacity-100 focus-visible:opacity-100 max-desk:opacity-100')}><X /></IconButton>
          </div>
        )
      })}
    </nav>
  )
}
