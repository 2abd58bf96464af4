import { useQuery } from '@tanstack/react-query'
import { Download, FolderTree, History } from 'lucide-react'
import { type ReactNode, Suspense, lazy, useState } from 'react'
import { Notice, Skeleton, Warning } from '@/components/notice'
import { Text } from '@/components/text'
import { Button, IconButton } from '@/components/ui/button'
import { Kbd, Segments } from '@/components/ui/tag'
import type { Deeds } from '@/features/files/deeds'
import { type Desk, type Doc, textOf } from '@/features/files/desk'
import { FolderView } from '@/features/files/folder-view'
import { HexView } from '@/features/files/hex-view'
import { ImageView } from '@/features/files/image-view'
import { type Name, above, base } from '@/features/files/names'
import { imageType, isMarkdown } from '@/features/files/opening'
import type { What } from '@/features/files/place'
import type { FilesSearch, View } from '@/features/files/search'
import { StatusBar } from '@/features/files/status-bar'
import { VersionView } from '@/features/files/version-view'
import { lastWrite } from '@/features/files/versions'
import { Unwritable } from '@/features/files/text'
import type { Place } from '@/lib/api'
import { moment, size } from '@/lib/format'
import { actorOf } from '@/lib/operation'
import { line } from '@/lib/safe'
import { useLang, useWords } from '@/lib/words'

const Editor = lazy(async () => ({ default: (await import('@/features/files/editor')).Editor }))
const ConflictView = lazy(async () => ({ default: (await import('@/features/files/conflict-view')).ConflictView }))
const MarkdownView = lazy(async () => ({ default: (await import('@/features/files/markdown-view')).MarkdownView }))

type Props = {
  at: Place; desk: Desk; deeds: Deeds; home: Name; current: Name; doc?: Doc; what: What; search: FilesSearch; running: boolean; onSearch: (change: FilesSearch, replace?: boolean) => void; onShow: (name: Name, change?: FilesSearch) => void
  onUpload: (directory: Name, folder?: boolean) => void; onSave: () => void; comparing: boolean; onCompare: (on: boolean) => void; onFiles?: () => void; go?: { line: number; column: number }
}

// viewsOf are the ways in which a file can be looked at, the first by itself.
function viewsOf(doc: Doc): View[] {
  if (doc.kind === 'image') return ['preview', 'hex']
  if (doc.kind === 'bytes') return ['hex']
  if (doc.kind === 'large') return ['text', 'hex']
  if (doc.kind === 'text') return imageType(doc.name) || isMarkdown(doc.name) ? ['text', 'preview', 'hex'] : ['text', 'hex']
  return []
}

// FilePane shows what the address names.
export function FilePane(props: Props) {
  const { at, desk, deeds, doc, what, current, home, search, running, onSearch, onShow } = props
  const w = useWords()
  const [position, setPosition] = useState({ line: 1, column: 1 })
  const { onSave: save, comparing, onCompare } = props
  const ready = doc?.state === 'ready' ? doc : undefined
  const views = ready ? viewsOf(ready) : []
  const view = views.find((one) => one === search.view) ?? views[0]
  const comparable = ready?.theirs?.text !== undefined
  let body: ReactNode = null
  if (what.error !== undefined) body = <div className="p-5"><Notice error={what.error} onRetry={what.retry} /></div>
  else if (doc?.state === 'failed') body = <div className="p-5"><Notice error={doc.error} onRetry={() => desk.retry(current)} /></div>
  else if (search.at) body = <VersionView at={at} op={search.at} side={search.view === 'side'} onSide={(side) => onSearch({ view: side ? 'side' : undefined }, true)} onClose={() => onSearch({ at: undefined, view: undefined })} />
  else if (what.kind === 'directory') body = <FolderView key={current} name={current} home={home} deeds={deeds} onShow={onShow} onUpload={props.onUpload} />
  else if (!ready) body = <Skeleton rows={16} height={20} what={line(base(current))} />
  else if (comparing && comparable) body = <ConflictView key={ready.theirs?.hash} desk={desk} doc={ready} onClose={() => onCompare(false)} />
  else if (ready.kind === 'special') body = <p className="p-5 text-muted-foreground">{w.files.special(ready.entry ? w.files.types[ready.entry.type] : '')}</p>
  else if (view === 'hex') body = <HexView key={current} at={at} name={current} size={ready.size} />
  else if (ready.kind === 'image' && ready.bytes) body = <ImageView key={ready.size} name={current} bytes={ready.bytes} />
  else if (view === 'preview' && ready.model) body = imageType(current) ? <ImageView name={current} bytes={textOf(ready.model)} /> : <MarkdownView text={textOf(ready.model)} at={at} name={current} onShow={onShow} />
  else if (ready.model) body = <Editor desk={desk} doc={ready} go={props.go} readOnly={ready.kind === 'large'} onSave={save} onPosition={(line, column) => setPosition({ line, column })} />
  return (
    <>
      <div className="flex min-h-[38px] shrink-0 items-center gap-2 border-b pr-2 pl-4 text-sm max-desk:min-h-12 max-desk:pl-2">
        {props.onFiles && <Button size="sm" onClick={props.onFiles}><FolderTree />{w.files.title}</Button>}
        <Crumbs name={current} home={home} onShow={onShow} />
        <span className="flex-1" />
        {views.length > 1 && !search.at && <Segments label={w.files.view} value={view ?? 'text'} onChange={(to) => onSearch({ view: to === views[0] ? undefined : to }, true)} options={views.map((one) => ({ value: one, label: w.files.views[one] }))} />}
        {what.kind === 'file' && <IconButton label={`${w.files.history} (Alt H)`} aria-pressed={search.history === true} onClick={() => onSearch({ history: search.history ? undefined : true, at: undefined }, true)}><History /></IconButton>}
        {what.kind && <IconButton label={w.act.download} onClick={() => deeds.download([{ name: current, entry: { name: base(current), path: current, type: what.kind === 'directory' ? 'directory' : 'file', size: 0, mode: '', modified_at: '' } }])}><Download /></IconButton>}
        {ready?.kind === 'text' && <Button size="sm" variant="default" disabled={!ready.dirty || ready.saving || !running} title={running ? undefined : w.files.notRunning} onClick={save}>{ready.gone ? w.files.saveNew : w.act.save}<Kbd>{'Ctrl S'}</Kbd></Button>}
      </div>
      {ready && !(comparing && comparable) && <Notes desk={desk} doc={ready} onCompare={() => onCompare(true)} onSave={save} />}
      <Suspense fallback={<Skeleton rows={16} height={20} />}>{body}</Suspense>
      {ready && !search.at && <StatusBar desk={desk} doc={ready} position={view === 'text' ? position : undefined} />}
    </>
  )
}

// Notes say what has to be known before one goes on typing.
function Notes({ desk, doc, onCompare, onSave }: { desk: Desk; doc: Doc; onCompare: () => void; onSave: () => void }) {
  const w = useWords()
  const lang = useLang()
  const [busy, setBusy] = useState(false)
  const { data: by } = useQuery(lastWrite(desk.at, doc.name, doc.theirs?.hash ?? ''))
  const name = line(base(doc.name))
  return (
    <>
      {doc.problem !== undefined && <Notice error={doc.problem instanceof Unwritable ? new Error(w.files.unwritable(line(doc.problem.letter))) : doc.problem} title={w.files.notSaved} onRetry={onSave} />}
      {doc.theirs && (
        <Warning action={<div className="flex gap-2"><Button size="sm" onClick={() => desk.takeTheirs(doc.name)}>{w.files.takeTheirs}</Button>{doc.theirs.text && <Button size="sm" variant="default" onClick={onCompare}>{w.files.compare}</Button>}</div>}>
          <p role="status">{by ? w.files.savedBy(line(actorOf(by)), name, moment(by.started_at, lang)) : w.files.savedByOther(name)}</p>
        </Warning>
      )}
      {doc.gone && <Warning><p role="status">{w.files.gone(name)}</p></Warning>}
      {doc.draft !== undefined && doc.dirty && !doc.theirs && !doc.gone && <Warning action={<Button size="sm" onClick={() => { desk.close(doc.name); desk.open(doc.name) }}>{w.files.dropDraft}</Button>}><p role="status">{w.files.draft(moment(new Date(doc.draft).toISOString(), lang))}</p></Warning>}
      {doc.kind === 'large' && (
        <Warning action={doc.bytes && doc.size !== undefined && doc.bytes.length < doc.size && (
          <Button size="sm" disabled={busy} onClick={async () => {
            setBusy(true)
            await desk.more(doc.name).catch(() => {})
            setBusy(false)
          }}>{w.files.more}</Button>
        )}>
          <p role="status">{w.files.large(size(doc.bytes?.length ?? 0), doc.size === undefined ? '—' : size(doc.size))}</p>
        </Warning>
      )}
    </>
  )
}

export function Crumbs({ name, home, onShow }: { name: Name; home: Name; onShow: (name: Name) => void }) {
  const w = useWords()
  const list = above(name)
  return (
    <nav aria-label={w.files.crumbs} className="flex min-w-0 items-center gap-1 overflow-hidden">
      {list.slice(Math.max(0, list.indexOf(home))).map((one) => (
        <span key={one} className="flex min-w-0 items-center gap-1 text-muted-foreground max-desk:hidden">
          <button type="button" onClick={() => onShow(one)} className="truncate rounded-sm py-1 hover:text-foreground hover:underline"><Text of={base(one)} /></button>
          {one !== '/' && <span aria-hidden className="text-faint">/</span>}
        </span>
      ))}
      <span className="truncate font-medium"><Text of={base(name)} /></span>
    </nav>
  )
}
