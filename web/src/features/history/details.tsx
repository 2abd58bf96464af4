import { Link } from '@tanstack/react-router'
import { ChevronDown, ChevronUp, Link2, X } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { StatusGlyph } from '@/components/glyph'
import { CopyButton, Moment, Text } from '@/components/text'
import { Boundary } from '@/components/notice'
import { IconButton } from '@/components/ui/button'
import { Tag } from '@/components/ui/tag'
import { toast } from '@/components/ui/toast'
import { Changes } from '@/features/history/changes'
import { Complete, Output } from '@/features/history/output'
import type { Row } from '@/features/history/rows'
import { cn } from '@/lib/cn'
import { shortRun, size, span } from '@/lib/format'
import { actorOf, changes, isRunning, reason, shell, subject } from '@/lib/operation'
import { visible } from '@/lib/safe'
import { label, useLang, useWords } from '@/lib/words'

type Tab = 'output' | 'changes' | 'request' | 'raw'
type Props = { row: Row; sandbox?: string; inList: boolean; onClose: () => void; onMove: (by: number) => void }

const permalink = (row: Row) => `${location.origin}/o/${encodeURIComponent(row.at.connection)}/${encodeURIComponent(row.at.sandbox)}/${encodeURIComponent(row.op.id)}`

export async function copyLink(row: Row, said: string) {
  await navigator.clipboard.writeText(permalink(row))
  toast(said)
}

// Details are all that is known of one operation.
export function Details({ row, sandbox, inList, onClose, onMove }: Props) {
  const w = useWords()
  const { op } = row
  const code = op.command?.exit_code
  const touched = op.file ? (op.file.diff ? 1 : 0) : changes(op)
  const tabs: [Tab, string, ReactNode][] = [
    ...(op.command ? [['output', w.details.output, size(op.command.stdout_kept_bytes + op.command.stderr_kept_bytes)] as const] : []).map((one): [Tab, string, ReactNode] => [...one]),
    ...(op.command || op.file ? [['changes', w.details.changes, touched || ''] as const] : []).map((one): [Tab, string, ReactNode] => [...one]),
    ['request', w.details.request, ''], ['raw', w.details.raw, ''],
  ]
  const [chosen, setChosen] = useState<Tab>()
  const tab = tabs.find(([name]) => name === chosen)?.[0] ?? (op.file?.diff ? 'changes' : tabs[0]?.[0]) ?? 'request'
  const why = reason(op)
  return (
    <aside aria-label={w.details.label} className="flex h-full min-h-0 w-full flex-col bg-background">
      <div className="flex h-11 shrink-0 items-center gap-2 pr-2 pl-4">
        <StatusGlyph op={op} />
        <h2 className="min-w-0 truncate font-medium">{label(w.kinds, op.type)} <span className="font-normal text-muted-foreground">{label(w.status, op.status)}</span></h2>
        {code !== undefined && code !== 0 && <Tag tone="fail">{w.history.exit(code)}</Tag>}
        <span className="flex-1" />
        <IconButton label={w.details.previous} onClick={() => onMove(-1)} disabled={!inList}><ChevronUp /></IconButton>
        <IconButton label={w.details.next} onClick={() => onMove(1)} disabled={!inList}><ChevronDown /></IconButton>
        <IconButton label={w.details.link} onClick={() => copyLink(row, w.act.copied)}><Link2 /></IconButton>
        <IconButton label={w.act.close} onClick={onClose}><X /></IconButton>
      </div>
      {!inList && <p className="px-4 pb-1 text-sm text-faint">{w.details.notIn}</p>}
      {subject(op) && (
        <div className="mx-4 flex items-start gap-1 rounded-md border bg-muted/60 py-0.5 pr-0.5 pl-2.5">
          <pre className="max-h-32 min-w-0 flex-1 overflow-auto py-1 font-mono text-sm break-all whitespace-pre-wrap" tabIndex={0}>{visible(subject(op))}</pre>
          <CopyButton text={op.command ? shell(op) : subject(op)} label={op.command ? w.details.shell : undefined} />
        </div>
      )}
      {why && <p className="mx-4 mt-2 border-l-2 border-fail bg-fail-soft px-2.5 py-1 font-mono text-sm break-words">{visible(why)}</p>}
      <Facts row={row} sandbox={sandbox} />
      <div role="tablist" aria-label={w.details.label} className="flex h-9 shrink-0 gap-4 border-b px-4">
        {tabs.map(([name, text, note]) => (
          <button key={name} type="button" role="tab" aria-selected={name === tab} onClick={() => setChosen(name)} className={cn('-mb-px border-b-2 border-transparent text-muted-foreground hover:text-foreground', name === tab && 'border-foreground font-medium text-foreground')}>
            {text} {note !== '' && <span className="text-sm font-normal text-faint">{note}</span>}
          </button>
        ))}
      </div>
      <Boundary key={`${op.id} ${tab}`}>
        {tab === 'output' && <Output row={row} />}
        {tab === 'changes' && <Changes op={op} />}
        {tab === 'request' && <Request row={row} />}
        {tab === 'raw' && <Raw value={op} />}
      </Boundary>
      {op.command && <div className="flex h-9 shrink-0 items-center gap-2 border-t px-4 text-sm text-muted-foreground"><Complete row={row} /></div>}
    </aside>
  )
}

function Facts({ row, sandbox }: { row: Row; sandbox?: string }) {
  const w = useWords()
  const lang = useLang()
  const { op, at } = row
  const here = { connection: at.connection, sandbox: at.sandbox }
  const facts: [string, ReactNode][] = []
  if (actorOf(op)) facts.push([w.details.actor, <Text key="" of={actorOf(op)} />])
  if (!isRunning(op)) facts.push([w.details.took, span(op.duration_ms, lang)])
  if (op.actor.run_id) facts.push([w.details.run, <Link key="" to="/sandboxes/$connection/$sandbox/history" params={here} search={{ run: op.actor.run_id }} className="inline-block font-mono text-sm leading-6 text-brand hover:underline"><Text of={shortRun(op.actor.run_id)} /></Link>])
  facts.push([w.details.started, <Moment key="" at={op.started_at} exact />])
  if (op.actor.thread_id) facts.push([w.details.thread, <Link key="" to="/sandboxes/$connection/$sandbox/history" params={here} search={{ thread: op.actor.thread_id }} className="inline-block font-mono text-sm leading-6 text-brand hover:underline"><Text of={shortRun(op.actor.thread_id)} /></Link>])
  if (op.command?.cwd) facts.push([w.details.folder, <span key="" className="font-mono text-sm"><Text of={op.command.cwd} /></span>])
  facts.push([w.details.source, <Text key="" of={op.source} />])
  if (sandbox) facts.push([w.details.sandbox, <Link key="" to="/sandboxes/$connection/$sandbox/history" params={here} search={{ op: op.id }} className="inline-block leading-6 text-brand hover:underline"><Text of={sandbox} /></Link>])
  return (
    <dl className="grid grid-cols-2 gap-x-4 gap-y-1 px-4 py-3">
      {facts.map(([name, value]) => <div key={name} className="flex min-w-0 gap-3 leading-6"><dt className="w-14 shrink-0 text-muted-foreground">{name}</dt><dd className="min-w-0 truncate">{value}</dd></div>)}
    </dl>
  )
}

function Request({ row }: { row: Row }) {
  const w = useWords()
  const lang = useLang()
  const { command } = row.op
  const names = Object.keys(command?.env ?? {})
  return (
    <div tabIndex={0} role="region" aria-label={w.details.request} className="min-h-0 flex-1 overflow-auto p-4">
      <dl className="mb-3 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 empty:hidden">
        {command?.timeout_ms ? <><dt className="text-muted-foreground">{w.details.limit}</dt><dd>{span(command.timeout_ms, lang)}</dd></> : null}
        {command?.exit_code !== undefined && <><dt className="text-muted-foreground">{w.details.exitCode}</dt><dd>{command.exit_code}</dd></>}
        {names.length > 0 && <><dt className="text-muted-foreground">{w.details.environment}</dt><dd className="font-mono text-sm">{visible(names.join(' '))}</dd></>}
      </dl>
      {row.op.request !== undefined && <><h3 className="pb-1 font-medium">{w.details.request}</h3><Json value={row.op.request} /></>}
      {row.op.result !== undefined && <><h3 className="pt-3 pb-1 font-medium">{w.details.result}</h3><Json value={row.op.result} /></>}
    </div>
  )
}

const Json = ({ value }: { value: unknown }) => <pre className="font-mono text-sm break-all whitespace-pre-wrap">{visible(JSON.stringify(value, null, 2))}</pre>

function Raw({ value }: { value: unknown }) {
  const w = useWords()
  return (
    <div tabIndex={0} role="region" aria-label={w.details.raw} className="relative min-h-0 flex-1 overflow-auto p-4">
      <CopyButton text={JSON.stringify(value, null, 2)} className="absolute top-2 right-3" />
      <Json value={value} />
    </div>
  )
}
