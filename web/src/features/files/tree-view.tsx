import { useVirtualizer } from '@tanstack/react-virtual'
import { ArrowUpRight, ChevronDown, ChevronRight, File, Folder, FolderOpen, LoaderCircle, type LucideIcon } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, createElement, useEffect, useId, useRef } from 'react'
import { Text } from '@/components/text'
import type { Entry } from '@/features/files/contents'
import type { Name } from '@/features/files/names'
import { type TreeRow, mayUnfold } from '@/features/files/tree'
import { cn } from '@/lib/cn'
import { size } from '@/lib/format'
import { usePhone } from '@/lib/hooks'
import { line } from '@/lib/safe'
import { useWords } from '@/lib/words'

export function EntryIcon({ entry, open }: { entry: Entry; open?: boolean }) {
  const icon: LucideIcon = entry.type === 'directory' ? (open ? FolderOpen : Folder) : entry.type === 'link' ? ArrowUpRight : File
  return createElement(icon, { 'aria-hidden': true, className: 'size-3.5 shrink-0 text-muted-foreground', strokeWidth: 1.6 })
}

type Props = {
  rows: TreeRow[]
  focused: Name | undefined
  chosen: ReadonlySet<Name>
  current?: Name
  target?: Name
  onFocus: (name: Name, event?: { shift: boolean; ctrl: boolean }) => void
  onOpen: (row: TreeRow & { kind: 'entry' }) => void
  onFold: (name: Name, open: boolean) => void
  onKey: (event: KeyboardEvent) => void
  onDragStart: (event: React.DragEvent, name: Name) => void
  mark?: (name: Name) => ReactNode
}

// TreeView is the tree: one stop for Tab, arrows walk in it.
export function TreeView({ rows, focused, chosen, current, target, onFocus, onOpen, onFold, onKey, onDragStart, mark }: Props) {
  const w = useWords()
  const id = useId()
  const height = usePhone() ? 40 : 26
  const ref = useRef<HTMLDivElement>(null)
  const list = useVirtualizer({ count: rows.length, getScrollElement: () => ref.current, estimateSize: () => height, overscan: 12, getItemKey: (i) => rows[i]?.key ?? i })
  const at = rows.findIndex((row) => row.kind === 'entry' && row.name === focused)
  useEffect(() => {
    if (at >= 0) list.scrollToIndex(at)
  }, [at >= 0 ? focused : undefined]) // eslint-disable-line react-hooks/exhaustive-deps -- only when another is focused
  const walk = (by: number, shift = false) => {
    for (let i = at + by; i >= 0 && i < rows.length; i += Math.sign(by)) {
      const row = rows[i]
      if (row?.kind === 'entry') return onFocus(row.name, { shift, ctrl: false })
    }
  }
  const pressed = (event: KeyboardEvent) => {
    const row = rows[at]
    const done = () => event.preventDefault()
    if (event.ctrlKey || event.metaKey || event.altKey) return onKey(event)
    if (event.key === 'ArrowDown') return done(), walk(1, event.shiftKey)
    if (event.key === 'ArrowUp') return done(), walk(at < 0 ? rows.length : -1, event.shiftKey)
    if (event.key === 'PageDown') return done(), onFocus(lastEntry(rows, Math.min(rows.length - 1, at + 20)))
    if (event.key === 'PageUp') return done(), onFocus(lastEntry(rows, Math.max(0, at - 20)))
    if (event.key === 'Home') return done(), onFocus(lastEntry(rows, 0))
    if (event.key === 'End') return done(), onFocus(lastEntry(rows, rows.length - 1))
    if (row?.kind === 'entry') {
      if (event.key === 'ArrowRight') return done(), mayUnfold(row.entry) && !row.open ? onFold(row.name, true) : walk(1)
      if (event.key === 'ArrowLeft') return done(), row.open ? onFold(row.name, false) : row.in !== row.name && onFocus(row.in)
      if (event.key === 'Enter') return done(), onOpen(row)
    }
    onKey(event)
  }
  return (
    <div
      ref={ref} role="tree" aria-label={w.files.tree} aria-multiselectable tabIndex={0} aria-activedescendant={at >= 0 ? `${id}-${at}` : undefined} onKeyDown={pressed} data-tree
      className="group min-h-0 flex-1 overflow-auto py-1 outline-none"
    >
      <div role="none" className="relative" style={{ height: list.getTotalSize() }}>
        {list.getVirtualItems().map((item) => {
          const row = rows[item.index]
          if (!row) return null
          const place = { transform: `translateY(${item.start}px)`, height, paddingLeft: 8 + row.depth * 14 }
          if (row.kind !== 'entry') {
            return (
              <div key={item.key} role="none" className="absolute inset-x-0 flex items-center gap-1.5 pr-2 text-sm text-faint" style={place}>
                <span className="w-4" />{row.kind === 'waiting' ? <><LoaderCircle aria-hidden className="spin size-3.5" />{w.files.reading}</> : row.kind === 'empty' ? w.files.emptyFolder : <span className="truncate text-fail" title={line(row.error.message)}>{line(row.error.message)}</span>}
              </div>
            )
          }
          const { entry, name } = row
          return (
            <div
              key={item.key} id={`${id}-${item.index}`} role="treeitem" aria-level={row.depth + 1} aria-selected={chosen.has(name)} aria-expanded={mayUnfold(entry) ? row.open : undefined} aria-label={spoken(entry)} data-name={name} draggable onDragStart={(event) => onDragStart(event, name)}
              onClick={(event) => {
                onFocus(name, { shift: event.shiftKey, ctrl: event.ctrlKey || event.metaKey })
                if (!event.shiftKey && !event.ctrlKey && !event.metaKey) onOpen(row)
              }}
              className={cn(
                'absolute inset-x-0 flex cursor-default items-center gap-1.5 pr-3 hover:bg-hover', (name === current || chosen.has(name)) && 'bg-selected hover:bg-selected', name === target && 'bg-brand-soft outline-1 -outline-offset-1 outline-brand',
                at === item.index && 'group-focus-visible:outline-2 group-focus-visible:-outline-offset-2 group-focus-visible:outline-ring',
              )}
              style={place}
            >
              {mayUnfold(entry) ? createElement(row.open ? ChevronDown : ChevronRight, { 'aria-hidden': true, className: cn('size-3.5 shrink-0 text-faint', entry.type === 'link' && !row.open && 'opacity-0'), onClick: (event: React.MouseEvent) => { event.stopPropagation(); onFold(name, !row.open) } }) : <span className="w-3.5 shrink-0" />}
              <EntryIcon entry={entry} open={row.open} />
              <span className={cn('min-w-0 flex-1 truncate', name !== current && 'text-muted-foreground', name === current && 'font-medium', row.depth === 0 && 'font-medium text-foreground')} title={line(entry.path)}><Text of={entry.name} /></span>
              {mark?.(name)}
              <span className="max-w-24 shrink-0 truncate text-xs text-faint">{entry.type === 'file' ? size(entry.size) : entry.type === 'link' ? <Text of={entry.link_target ?? ''} /> : ''}</span>
            </div>
          )
        })}
      </div>
    </div>
  )
}

const spoken = (entry: Entry) => line(entry.type === 'file' ? `${entry.name}, ${size(entry.size)}` : entry.type === 'link' ? `${entry.name} → ${entry.link_target ?? ''}` : entry.name)

function lastEntry(rows: TreeRow[], from: number): Name {
  for (let i = from; i >= 0; i--) {
    const row = rows[i]
    if (row?.kind === 'entry') return row.name
  }
  return '/'
}
