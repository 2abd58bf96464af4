import { useQuery } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { ArrowDown, ArrowUp } from 'lucide-react'
import { type KeyboardEvent, useMemo, useRef, useState } from 'react'
import { Empty, Notice, Skeleton } from '@/components/notice'
import { Moment, Text } from '@/components/text'
import { Button } from '@/components/ui/button'
import { ContextMenu } from '@/components/ui/context-menu'
import { Checkbox } from '@/components/ui/input'
import { type Entry, listQuery } from '@/features/files/contents'
import type { Deeds } from '@/features/files/deeds'
import { useDropTarget } from '@/features/files/drop'
import { EntryMenu } from '@/features/files/entry-menu'
import { shortcut } from '@/features/files/keys'
import { type Item, useLeaving } from '@/features/files/leaving'
import { type Name, nameOf, natural, parent } from '@/features/files/names'
import { permissions } from '@/features/files/status-bar'
import { EntryIcon } from '@/features/files/tree-view'
import { cn } from '@/lib/cn'
import { count, size } from '@/lib/format'
import { usePhone } from '@/lib/hooks'
import { line } from '@/lib/safe'
import { useWords } from '@/lib/words'

type Sort = 'name' | 'size' | 'modified'
type Props = { name: Name; home: Name; deeds: Deeds; onShow: (name: Name) => void; onUpload: (directory: Name, folder?: boolean) => void }

const sorts: Record<Sort, (a: Entry, b: Entry) => number> = { name: (a, b) => natural(a.name, b.name), size: (a, b) => a.size - b.size, modified: (a, b) => (a.modified_at < b.modified_at ? -1 : 1) }
const columns = 'grid grid-cols-[28px_minmax(0,1fr)_88px_108px_96px_128px] items-center gap-x-3 max-desk:grid-cols-[36px_minmax(0,1fr)_80px]'

// FolderView is a directory with all that is known of what it holds.
export function FolderView({ name, home, deeds, onShow, onUpload }: Props) {
  const w = useWords()
  const list = useQuery(listQuery(deeds.at, name))
  const leaving = useLeaving(deeds.at)
  const [sort, setSort] = useState<{ by: Sort; down: boolean }>({ by: 'name', down: false })
  const [chosen, setChosen] = useState<ReadonlySet<Name>>(new Set())
  const [at, setAt] = useState(0)
  const ref = useRef<HTMLDivElement>(null)
  const height = usePhone() ? 44 : 32
  const entries = useMemo(() => {
    const all = (list.data?.entries ?? []).filter((one) => !leaving.has(nameOf(one)))
    if (sort.by === 'name' && !sort.down) return all
    const rank = (one: Entry) => (one.type === 'directory' ? 0 : 1)
    return [...all].sort((a, b) => rank(a) - rank(b) || (sort.down ? -1 : 1) * sorts[sort.by](a, b))
  }, [list.data, leaving, sort])
  const rows = useVirtualizer({ count: entries.length, getScrollElement: () => ref.current, estimateSize: () => height, overscan: 12 })
  const drop = useDropTarget(deeds, (target) => target ?? name)
  const item = (entry: Entry): Item => ({ name: nameOf(entry), entry })
  const picked = entries.filter((one) => chosen.has(nameOf(one))).map(item)
  const focused = entries[at]
  const items = picked.length > 0 ? picked : focused ? [item(focused)] : []
  const toggle = (one: Name, to = at, range = false) => {
    const next = new Set(chosen)
    if (range) for (const other of entries.slice(Math.min(at, to), Math.max(at, to) + 1)) next.add(nameOf(other))
    else if (!next.delete(one)) next.add(one)
    setChosen(next)
    setAt(to)
  }
  const walk = (to: number) => {
    const i = Math.max(0, Math.min(entries.length - 1, to))
    setAt(i)
    rows.scrollToIndex(i)
  }
  const pressed = (event: KeyboardEvent) => {
    const by: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -entries.length, End: entries.length }
    const step = by[event.key]
    if (step !== undefined && !event.ctrlKey) {
      event.preventDefault()
      const to = Math.max(0, Math.min(entries.length - 1, at + step))
      const other = entries[to]
      if (event.shiftKey && other) toggle(nameOf(other), to, true)
      else walk(to)
    } else if (event.key === ' ' && focused) {
      event.preventDefault()
      toggle(nameOf(focused))
    } else if (event.key === 'Enter' && focused) onShow(nameOf(focused))
    else if (event.key === 'Backspace' && name !== '/') onShow(parent(name))
    else if (event.key === 'a' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault()
      setChosen(new Set(entries.map(nameOf)))
    } else if (event.key === 'Escape' && chosen.size > 0) setChosen(new Set())
    else shortcut(event, deeds, items, name)
  }
  const head = (by: Sort, text: string, className = '') => (
    <button type="button" role="columnheader" aria-sort={sort.by === by ? (sort.down ? 'descending' : 'ascending') : 'none'} onClick={() => setSort({ by, down: sort.by === by && !sort.down })} className={cn('flex items-center gap-1 text-left hover:text-foreground', className)}>{text}{sort.by === by && (sort.down ? <ArrowDown aria-hidden className="size-3" /> : <ArrowUp aria-hidden className="size-3" />)}</button>
  )
  if (list.error && !list.data) return <div className="p-5"><Notice error={list.error} onRetry={() => list.refetch()} /></div>
  if (!list.data) return <Skeleton rows={16} height={32} what={line(name)} />
  const bytes = entries.reduce((n, one) => n + (one.type === 'file' ? one.size : 0), 0)
  return (
    <div className={cn('flex min-h-0 flex-1 flex-col', drop.over && 'bg-brand-soft/40')} {...drop.handlers(undefined)}>
      {entries.length === 0 ? (
        <Empty text={w.files.emptyHere}><div className="flex gap-2"><Button onClick={() => deeds.ask({ kind: 'file', in: name })}>{w.files.newFile}</Button><Button onClick={() => onUpload(name)}>{w.files.uploadFiles}</Button></div></Empty>
      ) : (
        <div role="grid" aria-label={w.files.contents} aria-multiselectable aria-rowcount={entries.length + 1} className="flex min-h-0 flex-1 flex-col">
          <div role="row" className={cn(columns, 'h-8 shrink-0 border-b px-4 text-sm text-muted-foreground')}>
            <span role="columnheader" className="flex"><Checkbox aria-label={w.files.selectAll} checked={picked.length > 0 && picked.length === entries.length} onChange={() => setChosen(picked.length === entries.length ? new Set() : new Set(entries.map(nameOf)))} /></span>
            {head('name', w.files.name)}{head('size', w.files.size, 'justify-end')}{head('modified', w.files.modified, 'max-desk:hidden')}<span role="columnheader" className="max-desk:hidden">{w.files.mode}</span><span role="columnheader" className="max-desk:hidden">{w.files.owner}</span>
          </div>
          <ContextMenu items={<EntryMenu items={items} home={home} root={items.some((one) => one.name === '/')} deeds={deeds} onOpen={onShow} onUpload={onUpload} />}>
            <div ref={ref} role="rowgroup" tabIndex={0} onKeyDown={pressed} data-folder aria-label={w.files.contents} aria-activedescendant={focused ? `folder-${at}` : undefined} className="group min-h-0 flex-1 overflow-auto outline-none">
              <div role="presentation" className="relative" style={{ height: rows.getTotalSize() }}>
                {rows.getVirtualItems().map((row) => {
                  const entry = entries[row.index]
                  if (!entry) return null
                  const one = nameOf(entry)
                  const on = chosen.has(one)
                  return (
                    <div
                      key={one} id={`folder-${row.index}`} role="row" aria-rowindex={row.index + 2} aria-selected={on} draggable
                      onDragStart={(event) => event.dataTransfer.setData('application/x-glassbox-files', JSON.stringify((on ? picked : [item(entry)]).map((other) => other.name)))}
                      {...(entry.type === 'directory' ? drop.handlers(one) : {})}
                      onContextMenu={() => {
                        setAt(row.index)
                        if (!on) setChosen(new Set())
                      }}
                      onClick={(event) => {
                        if (event.shiftKey || event.ctrlKey || event.metaKey) return toggle(one, row.index, event.shiftKey)
                        setAt(row.index)
                      }}
                      onDoubleClick={() => onShow(one)}
                      className={cn(columns, 'absolute inset-x-0 border-b px-4 hover:bg-hover', on && 'bg-selected hover:bg-selected', drop.target === one && 'bg-brand-soft outline-1 -outline-offset-1 outline-brand', row.index === at && 'group-focus-visible:outline-2 group-focus-visible:-outline-offset-2 group-focus-visible:outline-ring')}
                      style={{ transform: `translateY(${row.start}px)`, height }}
                    >
                      <span role="gridcell" className="flex"><Checkbox tabIndex={-1} aria-label={w.files.select(line(entry.name))} checked={on} onChange={() => toggle(one, row.index)} onClick={(event) => event.stopPropagation()} /></span>
                      <span role="gridcell" className="flex min-w-0 items-center gap-2">
                        <EntryIcon entry={entry} />
                        <button type="button" tabIndex={-1} onClick={(event) => !event.shiftKey && !event.ctrlKey && !event.metaKey && onShow(one)} className="min-w-0 truncate py-1 text-left hover:underline"><Text of={entry.name} /></button>
                        {entry.link_target !== undefined && <span className="min-w-0 truncate text-faint">→ <Text of={entry.link_target} /></span>}
                      </span>
                      <span role="gridcell" className="text-right text-muted-foreground" title={entry.type === 'file' ? count(entry.size) : undefined}>{entry.type === 'file' ? size(entry.size) : w.files.types[entry.type]}</span>
                      <span role="gridcell" className="truncate text-muted-foreground max-desk:hidden"><Moment at={entry.modified_at} /></span>
                      <span role="gridcell" className="font-mono text-sm text-muted-foreground max-desk:hidden" title={entry.mode}>{permissions(entry.mode)}</span>
                      <span role="gridcell" className="truncate text-muted-foreground max-desk:hidden"><Text of={[entry.owner, entry.group].filter(Boolean).join(':')} /></span>
                    </div>
                  )
                })}
              </div>
            </div>
          </ContextMenu>
        </div>
      )}
      <footer className="flex min-h-7 shrink-0 items-center gap-3 border-t bg-sidebar px-4 text-sm text-muted-foreground">
        {picked.length > 0 ? (
          <>
            <span>{w.files.chosen(picked.length)}</span><span className="flex-1" />
            <Button size="sm" variant="ghost" onClick={() => deeds.download(picked)}>{w.act.download}</Button>
            <Button size="sm" variant="ghost" onClick={() => deeds.ask({ kind: 'move', items: picked })}>{w.files.moveTo}</Button>
            <Button size="sm" variant="ghost" className="text-fail" onClick={() => deeds.remove(picked)}>{w.files.delete}</Button>
          </>
        ) : <span>{w.files.summary(count(entries.length), size(bytes))}</span>}
        {list.data.truncated && <span className="text-warn">{w.files.notAll}</span>}
      </footer>
    </div>
  )
}
