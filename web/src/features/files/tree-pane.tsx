import { FilePlus2, FolderPlus, RefreshCw, Search, Upload } from 'lucide-react'
import { useQueryClient } from '@tanstack/react-query'
import { type KeyboardEvent, useMemo, useState } from 'react'
import { IconButton } from '@/components/ui/button'
import { ContextMenu } from '@/components/ui/context-menu'
import { Menu, MenuItem } from '@/components/ui/menu'
import { type Entry, filesKey } from '@/features/files/contents'
import type { Deeds } from '@/features/files/deeds'
import { useDropTarget } from '@/features/files/drop'
import { EntryMenu } from '@/features/files/entry-menu'
import { shortcut } from '@/features/files/keys'
import { type Item, useLeaving } from '@/features/files/leaving'
import { type Name, parent } from '@/features/files/names'
import { mayUnfold, useTree, useUnfolded } from '@/features/files/tree'
import { TreeView } from '@/features/files/tree-view'
import { useWords } from '@/lib/words'

type Props = { deeds: Deeds; roots: Entry[]; home: Name; current: Name; onShow: (name: Name) => void; onSearch: () => void; onUpload: (directory: Name, folder?: boolean) => void }

export function TreePane({ deeds, roots, home, current, onShow, onSearch, onUpload }: Props) {
  const w = useWords()
  const client = useQueryClient()
  const { at } = deeds
  const { open, unfold, fold } = useUnfolded(at)
  const leaving = useLeaving(at)
  const rows = useTree(at, roots, open, leaving)
  const [focused, setFocused] = useState<Name>(current)
  const [chosen, setChosen] = useState<ReadonlySet<Name>>(new Set())
  const [seen, setSeen] = useState(current)
  if (seen !== current) { // the tree follows what is looked at
    setSeen(current)
    setFocused(current)
    setChosen(new Set())
  }
  const entries = useMemo(() => new Map(rows.flatMap((row) => (row.kind === 'entry' ? [[row.name, row] as const] : []))), [rows])
  const row = entries.get(focused)
  const items: Item[] = [...(chosen.size > 1 ? chosen : [focused])].flatMap((name) => {
    const one = entries.get(name)
    return one ? [{ name, entry: one.entry }] : []
  })
  const directory = row ? (row.entry.type === 'directory' || row.open ? row.name : parent(row.name)) : home
  const isRoot = (name: Name) => name === home || name === '/'
  const free = items.filter((one) => !isRoot(one.name))
  const focus = (name: Name, how?: { shift: boolean; ctrl: boolean }) => {
    if (how?.ctrl) {
      const next = new Set(chosen.size > 0 ? chosen : [focused])
      if (!next.delete(name)) next.add(name)
      setChosen(next)
    } else if (how?.shift) {
      const names = [...entries.keys()]
      const [a, b] = [names.indexOf(focused), names.indexOf(name)]
      setChosen(new Set([...chosen, ...names.slice(Math.min(a, b), Math.max(a, b) + 1)]))
    } else setChosen(new Set())
    setFocused(name)
  }
  const drop = useDropTarget(deeds, (name) => {
    const one = name === undefined ? undefined : entries.get(name)
    return one ? (one.entry.type === 'directory' ? one.name : parent(one.name)) : home
  })
  const rowAt = (target: EventTarget | null): Name | undefined => (target instanceof HTMLElement ? target.closest<HTMLElement>('[data-name]')?.dataset.name : undefined)
  const pressed = (event: KeyboardEvent) => shortcut(event, deeds, free, directory)
  return (
    <aside aria-label={w.files.title} className="flex min-h-0 w-full flex-1 flex-col">
      <div className="flex h-9 shrink-0 items-center border-b pr-1.5 pl-4 max-desk:h-11">
        <h2 className="flex-1 font-medium">{w.files.title}</h2>
        <IconButton label={w.files.newFile} onClick={() => deeds.ask({ kind: 'file', in: directory })}><FilePlus2 /></IconButton>
        <IconButton label={w.files.newFolder} onClick={() => deeds.ask({ kind: 'folder', in: directory })}><FolderPlus /></IconButton>
        <Menu trigger={<IconButton label={w.files.upload}><Upload /></IconButton>}>
          <MenuItem onSelect={() => onUpload(directory)}>{w.files.uploadFiles}</MenuItem>
          <MenuItem onSelect={() => onUpload(directory, true)}>{w.files.uploadFolder}</MenuItem>
        </Menu>
        <IconButton label={w.files.refresh} onClick={() => client.invalidateQueries({ queryKey: filesKey(at) })}><RefreshCw /></IconButton>
        <IconButton label={`${w.files.search} (Ctrl Shift F)`} onClick={onSearch}><Search /></IconButton>
      </div>
      <ContextMenu items={<EntryMenu items={items} home={home} root={free.length === 0} deeds={deeds} onOpen={onShow} onUpload={onUpload} />}>
        <div
          className="flex min-h-0 flex-1 flex-col" {...drop.handlers(undefined)}
          onDragOver={(event) => drop.handlers(rowAt(event.target)).onDragOver(event)} onDrop={(event) => drop.handlers(rowAt(event.target)).onDrop(event)}
          onContextMenu={(event) => {
            const name = rowAt(event.target)
            if (name !== undefined && !chosen.has(name)) focus(name)
          }}
        >
          <TreeView
            rows={rows} focused={focused} chosen={chosen} current={current} target={drop.target} onFocus={focus} onKey={pressed}
            onDragStart={(event, name) => event.dataTransfer.setData('application/x-glassbox-files', JSON.stringify(chosen.has(name) ? [...chosen] : [name]))}
            onFold={(name, on) => (on ? unfold(name) : fold(name))}
            onOpen={(one) => {
              if (mayUnfold(one.entry) && one.open && one.name === current) fold(one.name)
              else onShow(one.name)
            }}
          />
        </div>
      </ContextMenu>
    </aside>
  )
}
