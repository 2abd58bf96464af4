import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { MoreHorizontal, Pencil, Plug, Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { Confirm } from '@/components/confirm'
import { Notice, Skeleton } from '@/components/notice'
import { PageHead } from '@/components/page'
import { Text } from '@/components/text'
import { Button, IconButton } from '@/components/ui/button'
import { Menu, MenuItem, MenuLine } from '@/components/ui/menu'
import { Tag } from '@/components/ui/tag'
import { toast } from '@/components/ui/toast'
import { ConnectionPanel } from '@/features/connections/connection-panel'
import { type Answering, type Connection, type Report, send } from '@/lib/api'
import { age, span } from '@/lib/format'
import { useNow } from '@/lib/hooks'
import { useMay } from '@/lib/may'
import { connectionsQuery, sandboxesQuery } from '@/lib/queries'
import { line, visible } from '@/lib/safe'
import { label, useLang, useWords } from '@/lib/words'

export function ConnectionsPage() {
  const w = useWords()
  const client = useQueryClient()
  const may = useMay('admin')
  const list = useQuery(connectionsQuery)
  const boxes = useInfiniteQuery(sandboxesQuery)
  const [editing, setEditing] = useState<Connection | 'new'>()
  const [removing, setRemoving] = useState<Connection>()
  const answering = new Map(boxes.data?.pages[0]?.connections.map((one) => [one.id, one]))
  const counts = new Map<string, number>()
  for (const box of boxes.data?.pages.flatMap((page) => page.items) ?? []) if (!box.gone_at) counts.set(box.connection, (counts.get(box.connection) ?? 0) + 1)
  return (
    <>
      <PageHead title={w.connections.title}>
        <Button variant="default" disabled={!may} title={may ? undefined : w.role.needs(label(w.role, 'admin'))} onClick={() => setEditing('new')}><Plus />{w.connections.add}</Button>
      </PageHead>
      <div className="min-h-0 flex-1 overflow-y-auto border-t">
        {list.error && !list.data && <div className="p-5"><Notice error={list.error} onRetry={() => list.refetch()} /></div>}
        {list.isPending && !list.error && <Skeleton rows={3} what={w.connections.title} />}
        <ul>{list.data?.map((one) => <Row key={one.id} of={one} answering={answering.get(one.id)} boxes={counts.get(one.id) ?? 0} may={may} onEdit={() => setEditing(one)} onRemove={() => setRemoving(one)} />)}</ul>
      </div>
      {editing && <ConnectionPanel key={editing === 'new' ? 'new' : `${editing.id} ${editing.revision}`} of={editing === 'new' ? undefined : editing} onClose={() => setEditing(undefined)} />}
      {removing && <Confirm title={w.connections.removeTitle(line(removing.name))} ask={w.connections.removeAsk} action={w.connections.remove} typed={removing.name} onClose={() => setRemoving(undefined)} onDo={async () => {
        await send('DELETE', `/connections/${removing.id}`)
        await client.invalidateQueries({ queryKey: ['connections'] })
        await client.invalidateQueries({ queryKey: ['sandboxes'] })
        toast(w.connections.removed(line(removing.name)))
      }} />}
    </>
  )
}

type RowProps = { of: Connection; answering?: Answering; boxes: number; may: boolean; onEdit: () => void; onRemove: () => void }

function Row({ of, answering, boxes, may, onEdit, onRemove }: RowProps) {
  const w = useWords()
  const lang = useLang()
  const mayTest = useMay('operator')
  const test = useTest(of.id)
  const local = !of.endpoint
  return (
    <li className="border-b px-5 py-2.5 max-desk:px-4">
      <div className="flex min-h-[30px] items-center gap-3">
        <Plug className="size-4 shrink-0 text-muted-foreground" strokeWidth={1.6} aria-hidden />
        <div className="flex min-w-0 flex-1 items-baseline gap-x-3 max-desk:flex-col">
          <h2 className="max-w-full truncate font-medium"><Text of={of.name} /></h2>
          <span className="max-w-full truncate font-mono text-sm text-muted-foreground">{local ? w.connections.local : <Text of={of.endpoint ?? ''} />}</span>
        </div>
        <State of={of} answering={answering} />
        <span className="w-24 text-right text-muted-foreground max-desk:hidden">{boxes} {w.connections.sandboxes}</span>
        <Button size="sm" disabled={!mayTest || test.busy} onClick={test.run}>{test.busy ? w.connections.testing : w.connections.test}</Button>
        {!local && (
          <Menu trigger={<IconButton label={w.connections.menu(line(of.name))}><MoreHorizontal /></IconButton>}>
            <MenuItem disabled={!may} onSelect={onEdit}><Pencil />{w.connections.edit}</MenuItem>
            <MenuLine />
            <MenuItem danger disabled={!may} onSelect={onRemove}><Trash2 />{w.connections.remove}</MenuItem>
          </Menu>
        )}
      </div>
      <div role="status" className="empty:hidden">
        {test.report?.ok && <p className="pt-1.5 pl-7 text-ok">{w.connections.testOk(visible(test.report.version ?? ''), span(test.report.latency_ms, lang), test.report.sandboxes)}</p>}
        {!test.report && answering?.not_answering_since && answering.problem && <p className="pt-1.5 pl-7 font-mono text-sm text-warn">{visible(answering.problem.detail)}</p>}
      </div>
      {(test.error !== undefined || (test.report && !test.report.ok)) && <div className="pt-2 pl-7"><Notice error={test.error ?? new Error(test.report?.problem?.detail)} /></div>}
    </li>
  )
}

function useTest(id: string) {
  const [busy, setBusy] = useState(false)
  const [report, setReport] = useState<Report>()
  const [error, setError] = useState<unknown>()
  const run = async () => {
    setBusy(true)
    setError(undefined)
    setReport(undefined)
    try {
      setReport(await send<Report>('POST', `/connections/${id}/test`))
    } catch (wrong) {
      setError(wrong)
    }
    setBusy(false)
  }
  return { busy, report, error, run }
}

function State({ of, answering }: { of: Connection; answering?: Answering }) {
  const w = useWords()
  const lang = useLang()
  const now = useNow(5000)
  if (!of.enabled) return <Tag>{w.connections.disabled}</Tag>
  if (answering?.not_answering_since) return <Tag tone="warn">{w.connections.silent(age(now - Date.parse(answering.not_answering_since), lang))}</Tag>
  return answering?.seen_at ? <Tag tone="ok">{w.connections.answering}</Tag> : <Tag>{w.connections.never}</Tag>
}
