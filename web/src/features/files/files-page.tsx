import { useQuery } from '@tanstack/react-query'
import { useCallback, useEffect, useMemo, useState } from 'react'
import { Empty, Notice, Skeleton } from '@/components/notice'
import { rootQuery, stat } from '@/features/files/contents'
import { type Desk, deskOf, useDocs } from '@/features/files/desk'
import { FilePane } from '@/features/files/file-pane'
import { type Name, above, nameOf, parent, within } from '@/features/files/names'
import { useWhat } from '@/features/files/place'
import type { FilesSearch } from '@/features/files/search'
import { Tabs } from '@/features/files/tabs'
import { TreePane } from '@/features/files/tree-pane'
import { useUnfolded } from '@/features/files/tree'
import type { Place } from '@/lib/api'
import { useMay } from '@/lib/may'
import { meQuery } from '@/lib/queries'
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
  const docs = useDocs(desk)
  const root = useQuery({ ...rootQuery(at), enabled: running })
  const slash = useQuery({ queryKey: ['files', at.connection, at.sandbox, 'stat', '/'], queryFn: ({ signal }) => stat(at, '/', signal), enabled: running, staleTime: Infinity })
  const home = root.data && nameOf(root.data)
  const current = search.path ?? home
  const doc = desk.find(current)
  const what = useWhat(at, current, Boolean(doc))
  const [go, setGo] = useState<{ name: Name; line: number; column: number }>()
  const { unfold } = useUnfolded(at)
  const show = useCallback((name: Name, change: FilesSearch = {}) => onSearch({ path: name, at: undefined, view: undefined, ...change }), [onSearch])
  useEffect(() => {
    if (what.kind === 'file' && current && !doc) desk.open(current)
  }, [desk, what.kind, current, doc])
  useEffect(() => {
    if (current && home && within(current, home)) unfold(...above(current, home), ...(what.kind === 'directory' ? [current] : []))
    else if (current && home) unfold('/', ...above(current))
  }, [current, home, what.kind]) // eslint-disable-line react-hooks/exhaustive-deps -- when another is looked at
  const close = (name: Name) => {
    const at = docs.findIndex((one) => one.name === name)
    const next = docs[at + 1] ?? docs[at - 1]
    desk.close(name)
    if (name === current) show(next?.name ?? parent(name))
  }
  const roots = useMemo(() => (root.data ? (home === '/' || !slash.data ? [root.data] : [root.data, slash.data]) : []), [root.data, slash.data, home])
  if (!running && docs.length === 0) return <Empty text={w.files.notRunning} />
  if (root.error) return <div className="p-5"><Notice error={root.error} onRetry={() => root.refetch()} /></div>
  if (!root.data || !current || !home) return <Skeleton rows={14} height={26} what={w.files.title} />
  return (
    <div className="flex min-h-0 flex-1">
      <TreePane at={at} desk={desk} roots={roots} home={home} current={current} onShow={show} />
      <section aria-label={w.files.editor} className="flex min-w-0 flex-1 flex-col">
        <Tabs docs={docs} current={current} onShow={show} onClose={close} />
        <FilePane at={at} desk={desk} home={home} current={current} doc={doc} what={what} search={search} onSearch={onSearch} onShow={show} go={go?.name === current ? go : undefined} onGo={setGo} onClose={close} />
      </section>
    </div>
  )
}
