import { useQuery } from '@tanstack/react-query'
import { useCallback, useEffect, useEffectEvent, useMemo, useRef, useState } from 'react'
import { Confirm } from '@/components/confirm'
import { Empty, Notice, Skeleton } from '@/components/notice'
import { Dialog } from '@/components/ui/dialog'
import { rootQuery, stat } from '@/features/files/contents'
import { useDeeds } from '@/features/files/deeds'
import { type Desk, deskOf, useDocs } from '@/features/files/desk'
import { Dialogs } from '@/features/files/dialogs'
import { FilePane } from '@/features/files/file-pane'
import { useFollow } from '@/features/files/follow'
import { HistoryPane } from '@/features/files/history-pane'
import { type Name, above, base, nameOf, parent, within } from '@/features/files/names'
import { useWhat } from '@/features/files/place'
import { QuickOpen } from '@/features/files/quick-open'
import type { FilesSearch } from '@/features/files/search'
import { SearchPane } from '@/features/files/search-pane'
import { Tabs } from '@/features/files/tabs'
import { useUnfolded } from '@/features/files/tree'
import { TreePane } from '@/features/files/tree-pane'
import { UploadTray } from '@/features/files/upload-tray'
import { chosen } from '@/features/files/uploads'
import type { Place } from '@/lib/api'
import { usePhone } from '@/lib/hooks'
import { useMay } from '@/lib/may'
import { meQuery } from '@/lib/queries'
import { line } from '@/lib/safe'
import { label, useWords } from '@/lib/words'

type Props = { at: Place; running: boolean; search: FilesSearch; onSearch: (change: FilesSearch, replace?: boolean) => void }

// Files is where what lies in a sandbox is read and changed.
export function Files(props: Props) {
  const w = useWords()
  const may = useMay('operator')
  const { data: me } = useQuery(meQuery)
  if (!may) return <Empty text={`${w.files.closed} ${w.role.needs(label(w.role, 'operator'))}`} />
  if (!me) return <Skeleton rows={14} height={26} what={w.files.title} />
  return <Working {...props} desk={deskOf(props.at, me.user.name)} />
}

function Working({ at, running, search, onSearch, desk }: Props & { desk: Desk }) {
  const w = useWords()
  const phone = usePhone()
  const docs = useDocs(desk)
  const root = useQuery({ ...rootQuery(at), enabled: running })
  const slash = useQuery({ queryKey: ['files', at.connection, at.sandbox, 'slash'], queryFn: ({ signal }) => stat(at, '/', signal), enabled: running, staleTime: Infinity })
  const home = root.data && nameOf(root.data)
  const current = search.path ?? home
  const doc = desk.find(current)
  const what = useWhat(at, current, Boolean(doc))
  const [go, setGo] = useState<{ name: Name; line: number; column: number }>()
  const [pane, setPane] = useState<'tree' | 'search'>('tree')
  const [sheet, setSheet] = useState(false)
  const [quick, setQuick] = useState(false)
  const [closing, setClosing] = useState<Name>()
  const [comparing, setComparing] = useState<Name>()
  const { unfold } = useUnfolded(at)
  const show = useCallback((name: Name, change: FilesSearch = {}) => {
    setSheet(false)
    onSearch({ path: name, at: undefined, view: undefined, ...change })
  }, [onSearch])
  const deeds = useDeeds(at, desk, current, show)
  const { input, ask: upload } = useChooser(deeds)
  useFollow(at, desk, running)
  useEffect(() => {
    if (what.kind === 'file' && current && !doc) desk.open(current)
  }, [desk, what.kind, current, doc])
  useEffect(() => {
    if (!current || !home) return
    unfold(...(within(current, home) ? above(current, home) : ['/', ...above(current)]), ...(what.kind === 'directory' ? [current] : []))
  }, [current, home, what.kind]) // eslint-disable-line react-hooks/exhaustive-deps -- when another is looked at
  const close = (name: Name, sure = false) => {
    if (!sure && desk.find(name)?.dirty) return setClosing(name)
    const i = docs.findIndex((one) => one.name === name)
    const next = docs[i + 1] ?? docs[i - 1]
    desk.close(name)
    if (name === current) show(next?.name ?? parent(name))
  }
  const save = async () => {
    if (current && running && !(await desk.save(current)) && desk.find(current)?.theirs) setComparing(current)
  }
  const history = search.history === true && current !== undefined && what.kind === 'file'
  usePaneKeys({
    quick: () => setQuick(true), search: () => { setPane('search'); setSheet(true) }, save: () => void save(), history: () => onSearch({ history: search.history ? undefined : true, at: search.history ? undefined : search.at }, true),
  })
  const roots = useMemo(() => (root.data ? (home === '/' || !slash.data ? [root.data] : [root.data, slash.data]) : []), [root.data, slash.data, home])
  if (!running && docs.length === 0) return <Empty text={w.files.notRunning} />
  if (root.error && !root.data) return <div className="p-5"><Notice error={root.error} onRetry={() => root.refetch()} /></div>
  if (!root.data || !current || !home) return <Skeleton rows={14} height={26} what={w.files.title} />
  const side = pane === 'search'
    ? <SearchPane at={at} within={home} onGo={(name, line, column) => { setGo({ name, line, column }); show(name) }} onClose={() => setPane('tree')} />
    : <TreePane deeds={deeds} roots={roots} home={home} current={current} onShow={show} onSearch={() => setPane('search')} onUpload={upload} />
  return (
    <div className="relative flex min-h-0 flex-1">
      {input}
      {!phone && <div className="flex w-[252px] shrink-0 flex-col border-r max-wide:w-[228px]">{side}</div>}
      {phone && sheet && <Dialog open onClose={() => setSheet(false)} title={w.files.title} hideTitle className="inset-0 top-0 left-0 max-h-none w-full max-w-none translate-x-0 rounded-none border-0 bg-background text-base">{side}<button type="button" className="h-11 shrink-0 border-t font-medium" onClick={() => setSheet(false)}>{w.act.close}</button></Dialog>}
      <section aria-label={w.files.editor} className="flex min-w-0 flex-1 flex-col">
        <Tabs docs={docs} current={current} onShow={show} onClose={close} />
        <FilePane at={at} desk={desk} deeds={deeds} home={home} current={current} doc={doc} what={what} search={search} running={running} onSearch={onSearch} onShow={show} onUpload={upload} onSave={save} comparing={comparing === current} onCompare={(on) => setComparing(on ? current : undefined)} onFiles={phone ? () => { setPane('tree'); setSheet(true) } : undefined} go={go?.name === current ? go : undefined} />
      </section>
      {history && (
        <div className="w-[296px] shrink-0 border-l max-wide:w-[260px] max-desk:absolute max-desk:inset-x-0 max-desk:bottom-0 max-desk:z-20 max-desk:h-[58%] max-desk:w-full max-desk:border-t max-desk:border-l-0 max-desk:shadow-floating">
          <HistoryPane at={at} name={current} doc={doc} selected={search.at} onSelect={(op) => onSearch({ at: op, view: op ? search.view : undefined })} onClose={() => onSearch({ history: undefined, at: undefined }, true)} />
        </div>
      )}
      <UploadTray />
      <Dialogs deeds={deeds} onShow={show} />
      {quick && <QuickOpen at={at} home={home} onShow={show} onClose={() => setQuick(false)} />}
      {closing && <Confirm title={w.files.closeTitle(line(base(closing)))} ask={w.files.closeAsk} action={w.files.closeDo} onClose={() => setClosing(undefined)} onDo={async () => close(closing, true)} />}
    </div>
  )
}

// useChooser opens the browser's own picker of files.
function useChooser(deeds: ReturnType<typeof useDeeds>) {
  const ref = useRef<HTMLInputElement>(null)
  const [directory, setDirectory] = useState<Name>('/')
  const w = useWords()
  return {
    input: (
      <input ref={ref} type="file" multiple hidden aria-label={w.files.upload} onChange={(event) => {
        const files = chosen(event.target.files ?? new DataTransfer().files)
        event.target.value = ''
        if (files.length > 0) deeds.ask({ kind: 'upload', in: directory, files, folders: [] })
      }} />
    ),
    ask: (to: Name, folder = false) => {
      setDirectory(to)
      if (ref.current) ref.current.webkitdirectory = folder
      ref.current?.click()
    },
  }
}

type Keys = { quick: () => void; search: () => void; save: () => void; history: () => void }

// usePaneKeys are the keys of the whole tab; F6 walks from part to part.
function usePaneKeys(keys: Keys) {
  const pressed = useEffectEvent((event: KeyboardEvent) => {
    if (document.querySelector('[role=dialog]') || event.defaultPrevented) return
    const control = event.ctrlKey || event.metaKey
    const key = event.key.toLowerCase()
    const run = control && !event.altKey ? (key === 'p' && !event.shiftKey ? keys.quick : key === 'f' && event.shiftKey ? keys.search : key === 's' && !event.shiftKey ? keys.save : undefined) : event.altKey && key === 'h' ? keys.history : event.key === 'F6' ? () => walk(event.shiftKey) : undefined
    if (!run) return
    event.preventDefault()
    event.stopPropagation()
    run()
  })
  useEffect(() => {
    addEventListener('keydown', pressed, true)
    return () => removeEventListener('keydown', pressed, true)
  }, [])
}

function walk(back: boolean) {
  const parts = [...document.querySelectorAll<HTMLElement>('[data-tree], [data-folder], [data-editor] [role=textbox], [data-editor] textarea, [data-history]')]
  const at = parts.findIndex((one) => one.contains(document.activeElement))
  parts[(at + (back ? -1 : 1) + parts.length) % parts.length]?.focus()
}
