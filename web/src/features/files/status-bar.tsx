import type { Desk, Doc } from '@/features/files/desk'
import { encodings } from '@/features/files/encodings'
import { size } from '@/lib/format'
import { useWords } from '@/lib/words'

const breaks = { '\n': 'LF', '\r\n': 'CRLF', '\r': 'CR', mixed: 'mixed' } as const

export function StatusBar({ doc, position }: { desk: Desk; doc: Doc; position: { line: number; column: number } }) {
  const w = useWords()
  const { form } = doc
  return (
    <footer className="flex h-7 shrink-0 items-center gap-4 overflow-hidden border-t bg-sidebar px-4 text-sm whitespace-nowrap text-muted-foreground">
      {form && <span>{encodings[form.encoding] ?? form.encoding}{form.bom ? ` ${w.files.bom}` : ''}, {form.breaks === 'mixed' ? w.files.mixed : breaks[form.breaks]}</span>}
      {form && <span>{w.files.position(position.line, position.column)}</span>}
      {doc.entry && <span className="max-phone:hidden">{permissions(doc.entry.mode)} {doc.entry.owner}</span>}
      {doc.size !== undefined && <span className="max-phone:hidden">{size(doc.size)}</span>}
      <span className="flex-1" />
      {doc.saving ? <span>{w.files.saving}</span> : doc.dirty && <span className="text-brand">{w.files.unsaved}</span>}
    </footer>
  )
}

// permissions writes a mode as ls does.
export function permissions(mode: string): string {
  const bits = parseInt(mode, 8)
  const three = (n: number, special: boolean, letter: string) => `${n & 4 ? 'r' : '-'}${n & 2 ? 'w' : '-'}${special ? (n & 1 ? letter : letter.toUpperCase()) : n & 1 ? 'x' : '-'}`
  return three((bits >> 6) & 7, Boolean(bits & 0o4000), 's') + three((bits >> 3) & 7, Boolean(bits & 0o2000), 's') + three(bits & 7, Boolean(bits & 0o1000), 't')
}
