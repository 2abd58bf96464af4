import { Suspense, lazy, useState } from 'react'
import { Empty, Notice, Skeleton } from '@/components/notice'
import { Text } from '@/components/text'
import { Button } from '@/components/ui/button'
import { Kbd } from '@/components/ui/tag'
import type { Desk, Doc } from '@/features/files/desk'
import { type Name, above, base } from '@/features/files/names'
import type { What } from '@/features/files/place'
import type { FilesSearch } from '@/features/files/search'
import { StatusBar } from '@/features/files/status-bar'
import type { Place } from '@/lib/api'
import { useWords } from '@/lib/words'

const Editor = lazy(async () => ({ default: (await import('@/features/files/editor')).Editor }))

type Props = {
  at: Place; desk: Desk; home: Name; current: Name; doc?: Doc; what: What; search: FilesSearch; onSearch: (change: FilesSearch, replace?: boolean) => void; onShow: (name: Name, change?: FilesSearch) => void
  go?: { line: number; column: number }; onGo: (go: { name: Name; line: number; column: number }) => void; onClose: (name: Name) => void
}

// FilePane shows what the address names.
export function FilePane(props: Props) {
  const { desk, doc, what, current, home, onShow } = props
  const w = useWords()
  const [position, setPosition] = useState({ line: 1, column: 1 })
  const save = () => void desk.save(current)
  return (
    <>
      <div className="flex min-h-[38px] shrink-0 items-center gap-2 border-b pr-2 pl-4 text-sm">
        <Crumbs name={current} home={home} onShow={onShow} />
        <span className="flex-1" />
        {doc?.kind === 'text' && <Button size="sm" variant="default" disabled={!doc.dirty || doc.saving} onClick={save}>{w.act.save}<Kbd>{'Ctrl S'}</Kbd></Button>}
      </div>
      {doc?.problem !== undefined && <Notice error={doc.problem} title={w.files.notSaved} onRetry={save} />}
      {what.error !== undefined && <div className="p-5"><Notice error={what.error} onRetry={what.retry} /></div>}
      {doc?.state === 'failed' && <div className="p-5"><Notice error={doc.error} onRetry={() => desk.retry(current)} /></div>}
      {doc?.state === 'opening' && <Skeleton rows={16} height={20} what={base(current)} />}
      {what.kind === 'directory' && <Empty text={w.files.title} />}
      {doc?.state === 'ready' && (doc.kind === 'text' || doc.kind === 'large') && (
        <Suspense fallback={<Skeleton rows={16} height={20} />}><Editor desk={desk} doc={doc} go={props.go} readOnly={doc.kind === 'large'} onSave={save} onPosition={(line, column) => setPosition({ line, column })} /></Suspense>
      )}
      {doc?.state === 'ready' && <StatusBar desk={desk} doc={doc} position={position} />}
    </>
  )
}

export function Crumbs({ name, home, onShow }: { name: Name; home: Name; onShow: (name: Name) => void }) {
  const w = useWords()
  const list = above(name)
  const from = Math.max(0, list.indexOf(home))
  return (
    <nav aria-label={w.files.crumbs} className="flex min-w-0 items-center gap-1 overflow-hidden">
      {list.slice(list.includes(home) ? from : 0).map((one) => (
        <span key={one} className="flex min-w-0 items-center gap-1 text-muted-foreground">
          <button type="button" onClick={() => onShow(one)} className="truncate rounded-sm py-1 hover:text-foreground hover:underline"><Text of={base(one)} /></button>
          {one !== '/' && <span aria-hidden className="text-faint">/</span>}
        </span>
      ))}
      <span className="truncate font-medium"><Text of={base(name)} /></span>
    </nav>
  )
}
