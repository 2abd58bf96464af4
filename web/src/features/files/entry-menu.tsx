import { ArrowRightLeft, ClipboardPaste, Copy, Download, FilePlus2, FolderInput, FolderPlus, KeyRound, Link2, Pencil, Scissors, SquareArrowOutUpRight, Trash2, Upload } from 'lucide-react'
import { ContextItem, ContextLine } from '@/components/ui/context-menu'
import { toast } from '@/components/ui/toast'
import type { Deeds } from '@/features/files/deeds'
import type { Item } from '@/features/files/leaving'
import { type Name, parent, path } from '@/features/files/names'
import { useWords } from '@/lib/words'

type Props = { items: Item[]; home: Name; root: boolean; deeds: Deeds; onOpen: (name: Name) => void; onUpload: (directory: Name) => void }

// EntryMenu is what can be done with what is selected.
export function EntryMenu({ items, home, root, deeds, onOpen, onUpload }: Props) {
  const w = useWords()
  const [first] = items
  const one = items.length === 1 ? first : undefined
  const directory = one ? (one.entry.type === 'directory' ? one.name : parent(one.name)) : home
  return (
    <>
      {one && <ContextItem onSelect={() => onOpen(one.name)} keys="Enter"><SquareArrowOutUpRight />{w.files.openIt}</ContextItem>}
      <ContextItem onSelect={() => deeds.ask({ kind: 'file', in: directory })}><FilePlus2 />{w.files.newFile}</ContextItem>
      <ContextItem onSelect={() => deeds.ask({ kind: 'folder', in: directory })}><FolderPlus />{w.files.newFolder}</ContextItem>
      <ContextItem onSelect={() => onUpload(directory)}><Upload />{w.files.uploadHere}</ContextItem>
      <ContextLine />
      {!root && <ContextItem onSelect={() => deeds.hold(items, true)} keys="Ctrl X"><Scissors />{w.files.cut}</ContextItem>}
      {!root && <ContextItem onSelect={() => deeds.hold(items, false)} keys="Ctrl C"><Copy />{w.files.copy}</ContextItem>}
      <ContextItem disabled={!deeds.holds()} onSelect={() => deeds.paste(directory)} keys="Ctrl V"><ClipboardPaste />{w.files.paste}</ContextItem>
      {!root && <ContextItem onSelect={() => deeds.ask({ kind: 'move', items })}><FolderInput />{w.files.moveTo}</ContextItem>}
      {!root && <ContextItem onSelect={() => deeds.ask({ kind: 'copy', items })}><ArrowRightLeft />{w.files.copyTo}</ContextItem>}
      <ContextLine />
      {one && !root && <ContextItem onSelect={() => deeds.ask({ kind: 'rename', item: one })} keys="F2"><Pencil />{w.files.rename}</ContextItem>}
      {one && one.entry.type !== 'link' && !root && <ContextItem onSelect={() => deeds.ask({ kind: 'mode', item: one })}><KeyRound />{w.files.mode}</ContextItem>}
      {one && <ContextItem onSelect={() => { void navigator.clipboard.writeText(path(one.name)); toast(w.act.copied) }}><Link2 />{w.files.copyPath}</ContextItem>}
      <ContextItem onSelect={() => deeds.download(items)}><Download />{w.act.download}</ContextItem>
      {!root && <ContextLine />}
      {!root && <ContextItem danger onSelect={() => deeds.remove(items)} keys="Del"><Trash2 />{w.files.delete}</ContextItem>}
    </>
  )
}
