import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { StatusGlyph, stateOf } from '@/components/glyph'
import { Notice, Skeleton } from '@/components/notice'
import { CopyButton, Moment, Text, Took } from '@/components/text'
import { Tag } from '@/components/ui/tag'
import { Ports } from '@/features/sandbox/ports'
import { type Operation, type Page, type Place, type Sandbox, query, read, sandboxPath } from '@/lib/api'
import { isGone } from '@/lib/box'
import { age } from '@/lib/format'
import { useNow } from '@/lib/hooks'
import { actorOf, reason, subject } from '@/lib/operation'
import { connectionsQuery, sandboxQuery } from '@/lib/queries'
import { line } from '@/lib/safe'
import { label, useLang, useWords } from '@/lib/words'

const latest = (at: Place, what: string, filter: Record<string, string | number | string[]>, every: number | false) => ({
  queryKey: ['latest', at.connection, at.sandbox, what], refetchInterval: every,
  queryFn: async ({ signal }: { signal: AbortSignal }) => (await read<Page<Operation>>(`${sandboxPath(at)}/operations${query(filter)}`, signal)).items,
})

// Overview is what a sandbox is, who works in it, and what went wrong last.
export function Overview({ at }: { at: Place }) {
  const w = useWords()
  const { data: box } = useQuery(sandboxQuery(at))
  const living = box?.state === 'Running' && !isGone(box)
  const running = useQuery({ ...latest(at, 'running', { status: 'started', limit: 20 }, living ? 2000 : false), enabled: living })
  const failed = useQuery(latest(at, 'failed', { status: ['failed', 'timeout', 'unknown', 'denied'], limit: 5 }, living ? 5000 : false))
  const recent = useQuery(latest(at, 'recent', { limit: 8 }, living ? 3000 : false))
  if (!box) return <Skeleton />
  const working = [...new Set((running.data ?? []).map(actorOf).filter(Boolean))]
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      {living && <p className="border-b px-5 py-3 max-desk:px-4"><Running since={box.created_at} /> {working.length > 0 && w.overview.atWork(line(working.join(', ')))}</p>}
      <div className="grid grid-cols-[minmax(0,1fr)_minmax(300px,420px)] max-desk:grid-cols-1">
        <div className="min-w-0 border-r max-desk:border-r-0">
          {living && <Section title={w.overview.now}><Operations at={at} list={running.data} error={running.error} none={w.overview.noRunning} /></Section>}
          <Section title={w.overview.failures} link={<Link to="/sandboxes/$connection/$sandbox/history" params={at} search={{ status: 'failed' }} className="text-brand hover:underline">{w.overview.all}</Link>}>
            <Operations at={at} list={failed.data} error={failed.error} none={w.overview.noFailures} />
          </Section>
          <Section title={w.overview.latest} link={<Link to="/sandboxes/$connection/$sandbox/history" params={at} className="text-brand hover:underline">{w.overview.all}</Link>}>
            <Operations at={at} list={recent.data} error={recent.error} none={w.overview.nothing} />
          </Section>
        </div>
        <div><Facts box={box} />{living && <Ports at={at} />}</div>
      </div>
    </div>
  )
}

function Running({ since }: { since: string }) {
  const w = useWords()
  const lang = useLang()
  const now = useNow(5000)
  return <>{w.overview.running(age(now - Date.parse(since), lang))}</>
}

function Section({ title, link, children }: { title: string; link?: ReactNode; children: ReactNode }) {
  return (
    <section className="border-b px-5 py-3 max-desk:px-4">
      <div className="flex items-center pb-1"><h2 className="flex-1 font-medium">{title}</h2>{link}</div>
      {children}
    </section>
  )
}

function Operations({ at, list, error, none }: { at: Place; list?: Operation[]; error: Error | null; none: string }) {
  const w = useWords()
  if (error && !list) return <Notice error={error} />
  if (!list) return <div className="h-8" />
  if (list.length === 0) return <p className="py-1 text-muted-foreground">{none}</p>
  return (
    <ul>
      {list.map((op) => (
        <li key={op.id}>
          <Link to="/sandboxes/$connection/$sandbox/history" params={at} search={{ op: op.id }} className="-mx-2 flex h-8 items-center gap-2.5 rounded-md px-2 hover:bg-hover max-desk:h-9">
            <Moment at={op.started_at} className="w-[62px] shrink-0 text-muted-foreground" />
            <StatusGlyph op={op} />
            <span className="min-w-0 truncate font-mono text-sm">{subject(op) ? <Text of={subject(op)} /> : label(w.kinds, op.type)}</span>
            <span className="min-w-0 flex-1 truncate text-faint max-phone:hidden">{reason(op) ? <Text of={reason(op) ?? ''} /> : op.command ? '' : label(w.kinds, op.type)}</span>
            {op.status === 'failed' && op.command?.exit_code ? <Tag tone="fail">{w.history.exit(op.command.exit_code)}</Tag> : null}
            <span className="shrink-0 text-muted-foreground"><Took op={op} /></span>
          </Link>
        </li>
      ))}
    </ul>
  )
}

// What the service keeps in labels, and is told by itself.
const told = new Set(['agent_sandbox.name', 'sandbox_instance_id'])

function Facts({ box }: { box: Sandbox }) {
  const w = useWords()
  const { data } = useQuery(connectionsQuery)
  const mono = (text: string) => <span className="flex min-w-0 items-start"><span className="min-w-0 flex-1 font-mono text-sm break-all"><Text of={text} /></span><CopyButton text={text} className="-my-1" /></span>
  const facts: [string, ReactNode][] = [[w.overview.id, mono(box.id)]]
  if (box.instance_id && box.instance_id !== box.id) facts.push([w.overview.instance, mono(box.instance_id)])
  facts.push([w.overview.state, label(w.state, stateOf(box))])
  if ((box.message || box.reason) && box.state !== 'Running') facts.push([w.overview.why, <Text key="" of={box.message ?? box.reason ?? ''} />])
  facts.push([w.overview.connection, <Text key="" of={data?.find((one) => one.id === box.connection)?.name ?? box.connection} />])
  if (box.image) facts.push([w.overview.image, mono(box.image)])
  if (box.snapshot) facts.push([w.overview.snapshot, mono(box.snapshot)])
  facts.push([w.overview.created, <Moment key="" at={box.created_at} />])
  if (box.gone_at) facts.push([w.overview.ended, <Moment key="" at={box.gone_at} />])
  else facts.push([w.overview.expires, box.expires_at ? <Moment key="" at={box.expires_at} /> : w.sandboxes.never])
  const labels = Object.entries(box.metadata ?? {}).filter(([key]) => !told.has(key))
  if (labels.length > 0) facts.push([w.overview.labels, <span key="" className="flex flex-wrap gap-1">{labels.map(([key, value]) => <Tag key={key} className="max-w-full"><span className="truncate"><Text of={`${key}=${value}`} /></span></Tag>)}</span>])
  for (const warning of box.warnings ?? []) facts.push([w.overview.warnings, <span key={warning} className="text-warn"><Text of={warning} /></span>])
  return (
    <section className="px-5 py-3 max-desk:border-t max-desk:px-4">
      <div className="flex items-center pb-1"><h2 className="flex-1 font-medium">{w.overview.facts}</h2><CopyButton text={JSON.stringify(box, null, 2)} label={w.overview.copyJson} /></div>
      <dl>
        {facts.map(([name, value], i) => <div key={i} className="flex gap-3 py-1"><dt className="w-24 shrink-0 text-muted-foreground">{name}</dt><dd className="min-w-0 flex-1 break-words">{value}</dd></div>)}
      </dl>
    </section>
  )
}
