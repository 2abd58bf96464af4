import { Link } from '@tanstack/react-router'
import { ChevronDown, ChevronUp } from 'lucide-react'
import { Fragment } from 'react'
import { type Asking, BoxMenu } from '@/components/box-actions'
import { Expiry } from '@/components/expiry'
import { StateGlyph, stateOf } from '@/components/glyph'
import { Warning } from '@/components/notice'
import { Moment, Text } from '@/components/text'
import { Button } from '@/components/ui/button'
import { Checkbox } from '@/components/ui/input'
import { Tag } from '@/components/ui/tag'
import type { SandboxSearch, Sort } from '@/features/sandboxes/search'
import type { Answering, Sandbox } from '@/lib/api'
import { isGone, nameOf, placeOf } from '@/lib/box'
import { cn } from '@/lib/cn'
import { age, moment, short } from '@/lib/format'
import { useNow, usePhone } from '@/lib/hooks'
import { line, visible } from '@/lib/safe'
import { label, useLang, useWords } from '@/lib/words'

export const boxKey = (box: Sandbox) => `${box.connection}/${box.id}`

type Props = {
  groups: { connection?: Answering; boxes: Sandbox[] }[]; search: SandboxSearch; twice: Set<string>; selected: ReadonlySet<string>; current?: string; behind: number
  silent: (box: Sandbox) => Answering | undefined; onSort: (sort: Sort) => void; onSelect: (keys: string[], on: boolean) => void; onAsk: (box: Sandbox, asking: Asking) => void; onRetry: () => void
}

const columns: { sort?: Sort; name: 'name' | 'stateCol' | 'image' | 'created' | 'expires'; className?: string }[] = [
  { sort: 'name', name: 'name' }, { sort: 'state', name: 'stateCol', className: 'w-[26%] max-desk:hidden' }, { sort: 'image', name: 'image', className: 'w-[18%] max-desk:hidden' },
  { sort: 'created', name: 'created', className: 'w-36 max-desk:hidden' }, { sort: 'expires', name: 'expires', className: 'w-32 max-desk:w-28' },
]

export function SandboxTable({ groups, search, twice, selected, current, behind, silent, onSort, onSelect, onAsk, onRetry }: Props) {
  const w = useWords()
  const all = groups.flatMap((group) => group.boxes.map(boxKey))
  const some = all.some((key) => selected.has(key))
  return (
    <table className="w-full table-fixed border-collapse">
      <thead className="text-sm text-muted-foreground">
        <tr className="h-8 border-b">
          <th className="w-11 pl-5 text-left max-desk:hidden"><Checkbox aria-label={w.sandboxes.selectAll} checked={all.length > 0 && all.every((key) => selected.has(key))} ref={(box) => { if (box) box.indeterminate = some && !all.every((key) => selected.has(key)) }} onChange={(event) => onSelect(all, event.target.checked)} className="align-middle" /></th>
          {columns.map((one) => (
            <th key={one.name} scope="col" aria-sort={search.sort === one.sort ? (search.desc ? 'descending' : 'ascending') : undefined} className={cn('text-left font-normal max-desk:first-of-type:pl-4', one.className)}>
              <button type="button" onClick={() => one.sort && onSort(one.sort)} className="inline-flex items-center gap-1 py-1 hover:text-foreground">
                {w.sandboxes[one.name]}{search.sort === one.sort && (search.desc ? <ChevronDown className="size-3.5" /> : <ChevronUp className="size-3.5" />)}
              </button>
            </th>
          ))}
          <th className="w-12"><span className="sr-only">{w.act.more}</span></th>
        </tr>
      </thead>
      <tbody>
        {groups.map((group, i) => (
          <Fragment key={group.connection?.id ?? i}>
            {group.connection && <GroupHead of={group.connection} count={group.boxes.length} onRetry={onRetry} />}
            {group.boxes.map((box) => (
              <BoxRow key={boxKey(box)} box={box} twice={twice.has(nameOf(box))} selected={selected.has(boxKey(box))} current={current === boxKey(box)} behind={behind} silent={silent(box)} onSelect={(on) => onSelect([boxKey(box)], on)} onAsk={(asking) => onAsk(box, asking)} />
            ))}
          </Fragment>
        ))}
      </tbody>
    </table>
  )
}

function GroupHead({ of, count, onRetry }: { of: Answering; count: number; onRetry: () => void }) {
  const w = useWords()
  const lang = useLang()
  const now = useNow(5000)
  const columns = usePhone() ? 3 : 7
  const since = of.not_answering_since
  return (
    <>
      <tr className="h-9 border-b bg-sidebar">
        <th colSpan={columns} scope="rowgroup" className="px-5 text-left font-medium max-desk:px-4">
          <span className="flex items-center gap-2"><Text of={of.name} />{of.id === 'local' && <span className="font-normal text-faint">{w.sandboxes.local}</span>}<span className="flex-1" /><span className="font-normal text-muted-foreground">{count}</span></span>
        </th>
      </tr>
      {since && (
        <tr className="border-b"><td colSpan={columns} className="p-0">
          <Warning action={<Button size="sm" onClick={onRetry}>{w.act.retry}</Button>}>
            <span role="status"><span className="font-medium">{w.sandboxes.silent(line(of.name), age(now - Date.parse(since), lang))}</span> <span className="font-mono text-sm">{of.problem && visible(of.problem.detail)}</span> {of.seen_at ? w.sandboxes.silentRows(moment(of.seen_at, lang)) : w.sandboxes.silentNever}</span>
          </Warning>
        </td></tr>
      )}
    </>
  )
}

type RowProps = { box: Sandbox; twice: boolean; selected: boolean; current: boolean; behind: number; silent?: Answering; onSelect: (on: boolean) => void; onAsk: (asking: Asking) => void }

function BoxRow({ box, twice, selected, current, behind, silent, onSelect, onAsk }: RowProps) {
  const w = useWords()
  const lang = useLang()
  const name = nameOf(box)
  const state = label(w.state, stateOf(box))
  const note = box.gone_at ? w.sandboxes.endedAt(moment(box.gone_at, lang)) : silent?.seen_at ? w.sandboxes.lastSeen(state, moment(silent.seen_at, lang)) : state
  return (
    <tr aria-selected={selected} className={cn('h-11 border-b hover:bg-hover max-desk:h-14', selected && 'bg-selected hover:bg-selected', current && 'outline-2 -outline-offset-2 outline-ring')} ref={(row) => { if (current) row?.scrollIntoView({ block: 'nearest' }) }}>
      <td className="pl-5 max-desk:hidden"><Checkbox aria-label={w.sandboxes.select(line(name))} checked={selected} onChange={(event) => onSelect(event.target.checked)} className="align-middle" /></td>
      <td className="max-desk:pl-4">
        <span className="flex min-w-0 items-center gap-2.5">
          <StateGlyph box={box} silent={Boolean(silent)} />
          <span className="flex min-w-0 flex-col">
            <span className="flex min-w-0 items-center gap-2">
              <Link to="/sandboxes/$connection/$sandbox/history" params={placeOf(box)} className="truncate font-medium hover:underline"><Text of={name} /></Link>
              {twice && <span className="font-mono text-sm text-faint">{short(box.id)}</span>}
              {(box.warnings?.length ?? 0) > 0 && <Tag tone="warn" className="max-phone:hidden">{w.overview.warnings}</Tag>}
            </span>
            <span className="truncate text-sm text-muted-foreground desk:hidden">{note}</span>
          </span>
        </span>
      </td>
      <td className="truncate pr-3 text-muted-foreground max-desk:hidden">{note}{box.message && !isGone(box) && box.state !== 'Running' && <span className="text-faint">{' '}<Text of={box.message} /></span>}</td>
      <td className="truncate pr-3 font-mono text-sm text-muted-foreground max-desk:hidden"><Text of={box.image ?? '—'} /></td>
      <td className="text-muted-foreground max-desk:hidden"><Moment at={box.created_at} /></td>
      <td><Expiry box={box} behind={behind} bar /></td>
      <td className="pr-3 text-right"><BoxMenu box={box} onAsk={onAsk} /></td>
    </tr>
  )
}
