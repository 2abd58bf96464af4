import { useQuery } from '@tanstack/react-query'
import { ChevronUp, Folder } from 'lucide-react'
import { useState } from 'react'
import { Confirm } from '@/components/confirm'
import { Text } from '@/components/text'
import { IconButton } from '@/components/ui/button'
import { Checkbox, Field, Input } from '@/components/ui/input'
import { type Usage, isCode, listQuery, makeDirectory, setMode, usage, write } from '@/features/files/contents'
import type { Asking, Deeds } from '@/features/files/deeds'
import { type Item, settle } from '@/features/files/leaving'
import { type Name, base, join, nameOf, parent, path, wrongName } from '@/features/files/names'
import { UploadDialog } from '@/features/files/upload-dialog'
import type { Place } from '@/lib/api'
import { count, size } from '@/lib/format'
import { line } from '@/lib/safe'
import { useWords } from '@/lib/words'

type Props = { deeds: Deeds; onShow: (name: Name) => void }

export function Dialogs({ deeds, onShow }: Props) {
  const { asking, ask } = deeds
  const close = () => ask(undefined)
  if (!asking) return null
  switch (asking.kind) {
    case 'file':
    case 'folder':
    case 'rename':
      return <NameDialog key={asking.kind} asking={asking} deeds={deeds} onShow={onShow} onClose={close} />
    case 'mode':
      return <ModeDialog item={asking.item} deeds={deeds} onClose={close} />
    case 'delete':
      return <DeleteDialog items={asking.items} deeds={deeds} onClose={close} />
    case 'move':
    case 'copy':
      return <WhereDialog asking={asking} deeds={deeds} onClose={close} />
    case 'upload':
      return <UploadDialog asking={asking} deeds={deeds} onClose={close} />
  }
}

type Naming = { kind: 'file' | 'folder'; in: Name } | { kind: 'rename'; item: Item }

function NameDialog({ asking, deeds, onShow, onClose }: Props & { asking: Naming; onClose: () => void }) {
  const w = useWords()
  const { at } = deeds
  const old = asking.kind === 'rename' ? base(asking.item.name) : ''
  const [text, setText] = useState(old)
  const [taken, setTaken] = useState('')
  const wrong = wrongName(text)
  const title = asking.kind === 'file' ? w.files.newFile : asking.kind === 'folder' ? w.files.newFolder : w.files.renameTitle(line(old))
  const directory = asking.kind === 'rename' ? parent(asking.item.name) : asking.in
  const run = async () => {
    const to = join(directory, text)
    if (wrong) throw new Error(w.files.wrongName[wrong])
    try {
      if (asking.kind === 'rename') {
        if (to !== asking.item.name) await deeds.relocate(asking.item.name, to)
        return
      }
      settle()
      if (asking.kind === 'folder') await makeDirectory(at, to)
      else await write(at, to, new Uint8Array(), null)
    } catch (error) {
      if (isCode(error, 'file_exists', 'concurrent_modification')) setTaken(text)
      throw isCode(error, 'file_exists', 'concurrent_modification') ? new Error(w.files.exists(line(text), line(base(directory)))) : error
    }
    await deeds.fresh(directory)
    onShow(to)
  }
  const dot = text.lastIndexOf('.')
  return (
    <Confirm title={title} ask={<span className="font-mono text-sm"><Text of={path(directory)} /></span>} action={asking.kind === 'rename' ? w.files.rename : w.files.make} danger={false} onDo={run} onClose={onClose}>
      <Field label={w.files.name} wrong={text !== '' && wrong ? w.files.wrongName[wrong] : taken === text && taken ? w.files.exists(line(text), line(base(directory))) : undefined}>
        {(ids) => <Input {...ids} value={text} onChange={(event) => setText(event.target.value)} autoFocus autoComplete="off" spellCheck={false} onFocus={(event) => event.target.setSelectionRange(0, dot > 0 ? dot : text.length)} />}
      </Field>
    </Confirm>
  )
}

const bits = [[0o400, 0o200, 0o100], [0o040, 0o020, 0o010], [0o004, 0o002, 0o001]] as const

function ModeDialog({ item, deeds, onClose }: { item: Item; deeds: Deeds; onClose: () => void }) {
  const w = useWords()
  const [text, setText] = useState(item.entry.mode)
  const [deep, setDeep] = useState(false)
  const mode = /^[0-7]{3,4}$/.test(text) ? parseInt(text, 8) : undefined
  const who = [w.files.owner, w.files.group, w.files.others]
  return (
    <Confirm title={w.files.modeTitle(line(item.entry.name))} ask={<span>{w.files.owned(line(item.entry.owner ?? '—'), line(item.entry.group ?? '—'))}</span>} action={w.files.modeDo} danger={false} onClose={onClose} onDo={async () => {
      if (mode === undefined) throw new Error(w.files.modeWrong)
      await setMode(deeds.at, item.name, text.padStart(4, '0'), deep)
      await deeds.fresh(parent(item.name), item.name)
    }}>
      <table className="w-full text-left">
        <thead><tr><td /><th className="font-normal text-muted-foreground">{w.files.read}</th><th className="font-normal text-muted-foreground">{w.files.write}</th><th className="font-normal text-muted-foreground">{w.files.execute}</th></tr></thead>
        <tbody>
          {bits.map((row, i) => (
            <tr key={i} className="h-8"><th className="font-normal">{who[i]}</th>{row.map((bit, k) => <td key={bit}><Checkbox className="size-4" aria-label={`${who[i]}, ${[w.files.read, w.files.write, w.files.execute][k]}`} checked={Boolean((mode ?? 0) & bit)} onChange={() => setText(((mode ?? 0) ^ bit).toString(8).padStart(4, '0'))} /></td>)}</tr>
          ))}
        </tbody>
      </table>
      <Field label={w.files.octal} wrong={mode === undefined ? w.files.modeWrong : undefined}>{(ids) => <Input {...ids} value={text} onChange={(event) => setText(event.target.value)} className="w-24 font-mono" maxLength={4} />}</Field>
      {item.entry.type === 'directory' && <label className="flex items-center gap-2"><Checkbox checked={deep} onChange={() => setDeep(!deep)} />{w.files.modeDeep}</label>}
    </Confirm>
  )
}

// DeleteDialog says how much goes with a folder. It need not be counted to the end.
function DeleteDialog({ items, deeds, onClose }: { items: Item[]; deeds: Deeds; onClose: () => void }) {
  const w = useWords()
  const folders = items.filter((one) => one.entry.type === 'directory')
  const counted = useQuery({
    queryKey: ['usage', deeds.at.connection, deeds.at.sandbox, ...folders.map((one) => one.name)], staleTime: 0, gcTime: 0, retry: false,
    queryFn: ({ signal }) => Promise.all(folders.map(async (one): Promise<[Name, Usage]> => [one.name, await usage(deeds.at, one.name, signal)])),
  })
  const all = (counted.data ?? []).map(([, one]) => one)
  const files = all.reduce((n, one) => n + one.files, 0) + items.length - folders.length
  const bytes = all.reduce((n, one) => n + one.bytes, 0) + items.reduce((n, one) => n + (one.entry.type === 'file' ? one.entry.size : 0), 0)
  const [first] = items
  return (
    <Confirm
      title={items.length === 1 && first ? w.files.deleteTitle(line(first.entry.name)) : w.files.deleteMany(items.length)} action={w.files.delete} onClose={onClose}
      ask={
        <p role="status">
          {counted.data ? (all.some((one) => one.truncated) ? w.files.deleteAtLeast(count(files), size(bytes)) : w.files.deleteCount(count(files), size(bytes))) : counted.error ? w.files.notCounted : w.files.counting}
          {' '}{w.files.undoNote}
        </p>
      }
      onDo={async () => deeds.removeNow(items, new Map(counted.data))}
    />
  )
}

function WhereDialog({ asking, deeds, onClose }: { asking: Asking & { kind: 'move' | 'copy' }; deeds: Deeds; onClose: () => void }) {
  const w = useWords()
  const { items, kind } = asking
  const [first] = items
  const [where, setWhere] = useState<Name>(first ? parent(first.name) : '/')
  return (
    <Confirm title={(kind === 'move' ? w.files.moveTitle : w.files.copyTitle)(items.length === 1 && first ? line(first.entry.name) : w.files.things(items.length))} ask={w.files.whereAsk} action={kind === 'move' ? w.files.moveDo : w.files.copyDo} danger={false} onClose={onClose} onDo={() => (kind === 'move' ? deeds.relocateMany : deeds.copyMany)(items, where)}>
      <FolderPicker at={deeds.at} value={where} onChange={setWhere} />
    </Confirm>
  )
}

// FolderPicker chooses a directory by walking to it.
export function FolderPicker({ at, value, onChange }: { at: Place; value: Name; onChange: (name: Name) => void }) {
  const w = useWords()
  const list = useQuery(listQuery(at, value))
  const folders = (list.data?.entries ?? []).filter((one) => one.type === 'directory')
  return (
    <div className="rounded-md border">
      <div className="flex items-center gap-1 border-b py-1 pr-2 pl-1">
        <IconButton label={w.files.up} disabled={value === '/'} onClick={() => onChange(parent(value))}><ChevronUp /></IconButton>
        <span className="min-w-0 truncate font-mono text-sm" data-target><Text of={path(value)} /></span>
      </div>
      <div role="group" aria-label={w.files.folders} className="h-40 overflow-y-auto p-1">
        {list.data && folders.length === 0 && <p className="px-2 py-1 text-muted-foreground">{w.files.noFolders}</p>}
        {list.error && <p className="px-2 py-1 text-fail">{line(list.error.message)}</p>}
        {folders.slice(0, 500).map((one) => (
          <button key={nameOf(one)} type="button" onClick={() => onChange(nameOf(one))} className="flex h-7 w-full items-center gap-2 rounded-md px-2 text-left hover:bg-hover max-desk:h-10"><Folder aria-hidden className="size-3.5 shrink-0 text-muted-foreground" strokeWidth={1.6} /><span className="truncate"><Text of={one.name} /></span></button>
        ))}
      </div>
    </div>
  )
}
