import { useState } from 'react'
import { Menu, MenuItem, MenuLine } from '@/components/ui/menu'
import { toast } from '@/components/ui/toast'
import type { Desk, Doc } from '@/features/files/desk'
import { encodings } from '@/features/files/encodings'
import type { Form } from '@/features/files/text'
import { size } from '@/lib/format'
import { line } from '@/lib/safe'
import { useWords } from '@/lib/words'

const breaks = [['\n', 'LF'], ['\r\n', 'CRLF'], ['\r', 'CR']] as const

export function StatusBar({ desk, doc, position }: { desk: Desk; doc: Doc; position?: { line: number; column: number } }) {
  const w = useWords()
  const { form } = doc
  return (
    <footer className="flex h-7 shrink-0 items-center gap-4 overflow-hidden border-t bg-sidebar px-4 text-sm whitespace-nowrap text-muted-foreground">
      {form && (doc.kind === 'text' ? <FormMenus desk={desk} doc={doc} form={form} /> : <span>{encodings[form.encoding] ?? form.encoding}</span>)}
      {form && position && <span>{w.files.position(position.line, position.column)}</span>}
      {doc.entry && doc.entry.type !== 'link' && <span className="max-phone:hidden" title={doc.entry.mode}>{permissions(doc.entry.mode)} {line(doc.entry.owner ?? '')}</span>}
      {doc.entry?.link_target !== undefined && <span className="truncate max-phone:hidden">→ {line(doc.entry.link_target)}</span>}
      {doc.size !== undefined && <span className="max-phone:hidden">{size(doc.size)}</span>}
      <span className="flex-1" />
      {doc.saving ? <span role="status">{w.files.saving}</span> : doc.dirty && <span className="text-brand">{w.files.unsaved}</span>}
    </footer>
  )
}

const item = 'rounded-sm py-0.5 hover:text-foreground hover:underline'

function FormMenus({ desk, doc, form }: { desk: Desk; doc: Doc; form: Form }) {
  const w = useWords()
  const [how, setHow] = useState<'read' | 'write'>()
  const read = async (encoding: string) => {
    if (!(await desk.reread(doc.name, encoding).catch(() => false))) toast(w.files.notEncoded(encodings[encoding] ?? encoding), true)
  }
  return (
    <span className="flex gap-2">
      <Menu align="start" trigger={<button type="button" className={item} title={w.files.encoding}>{encodings[form.encoding] ?? form.encoding}{form.bom ? ` ${w.files.bom}` : ''}</button>}>
        <p className="px-2 py-1 text-sm text-muted-foreground">{w.files.readAs}</p>
        {Object.entries(encodings).map(([name, shown]) => <MenuItem key={name} disabled={doc.dirty} title={doc.dirty ? w.files.saveFirst : undefined} checked={name === form.encoding} onSelect={() => void read(name)}>{shown}</MenuItem>)}
        <MenuLine />
        <MenuItem onSelect={() => setHow('write')}>{w.files.writeAs}</MenuItem>
        {form.encoding.startsWith('utf') && <MenuItem onSelect={() => desk.setForm(doc.name, { bom: !form.bom })}>{form.bom ? w.files.noBom : w.files.withBom}</MenuItem>}
      </Menu>
      {how === 'write' && (
        <select aria-label={w.files.writeAs} autoFocus className="rounded-sm border bg-background" value={form.encoding} onBlur={() => setHow(undefined)} onChange={(event) => { desk.setForm(doc.name, { encoding: event.target.value, bom: event.target.value.startsWith('utf-16') || (form.bom && event.target.value === 'utf-8') }); setHow(undefined) }}>
          {Object.entries(encodings).map(([name, shown]) => <option key={name} value={name}>{shown}</option>)}
        </select>
      )}
      <Menu align="start" trigger={<button type="button" className={item} title={w.files.lineEnds}>{form.breaks === 'mixed' ? w.files.mixed : breaks.find(([one]) => one === form.breaks)?.[1]}</button>}>
        <p className="px-2 py-1 text-sm text-muted-foreground">{w.files.lineEnds}</p>
        {breaks.map(([one, shown]) => <MenuItem key={shown} checked={one === form.breaks} onSelect={() => desk.setForm(doc.name, { breaks: one })}>{shown}</MenuItem>)}
        {doc.asRead?.breaks === 'mixed' && <MenuItem checked={form.breaks === 'mixed'} onSelect={() => desk.setForm(doc.name, { breaks: 'mixed' })}>{w.files.mixed}</MenuItem>}
      </Menu>
    </span>
  )
}

// permissions writes a mode as ls does.
export function permissions(mode: string): string {
  const bits = parseInt(mode, 8)
  const three = (n: number, special: boolean, letter: string) => `${n & 4 ? 'r' : '-'}${n & 2 ? 'w' : '-'}${special ? (n & 1 ? letter : letter.toUpperCase()) : n & 1 ? 'x' : '-'}`
  return three((bits >> 6) & 7, Boolean(bits & 0o4000), 's') + three((bits >> 3) & 7, Boolean(bits & 0o2000), 's') + three(bits & 7, Boolean(bits & 0o1000), 't')
}
