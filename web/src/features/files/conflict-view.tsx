import { useQuery } from '@tanstack/react-query'
import { ChevronDown, ChevronUp } from 'lucide-react'
import { useEffect, useMemo, useRef, useState } from 'react'
import { Button, IconButton } from '@/components/ui/button'
import { Segments } from '@/components/ui/tag'
import type { Desk, Doc } from '@/features/files/desk'
import { textOf } from '@/features/files/desk'
import { options } from '@/features/files/editor'
import { editor, Range } from '@/features/files/monaco'
import { lastWrite } from '@/features/files/versions'
import { moment } from '@/lib/format'
import { usePhone } from '@/lib/hooks'
import { type Part, merge } from '@/lib/lines'
import { actorOf } from '@/lib/operation'
import { line } from '@/lib/safe'
import { useLang, useWords } from '@/lib/words'

type Column = 'mine' | 'result' | 'theirs'
type Side = 'mine' | 'theirs' | 'both'

const chosen = (part: Part & { kind: 'conflict' }, side: Side) => (side === 'both' ? [...part.mine, ...part.theirs] : part[side])

// layout is the merged text, with the places where both changed as line numbers.
function layout(parts: Part[]) {
  const lines: string[] = []
  const conflicts: { from: number; until: number; part: Part & { kind: 'conflict' } }[] = []
  for (const part of parts) {
    const from = lines.length
    lines.push(...(part.kind === 'conflict' ? part.mine : part.lines))
    if (part.kind === 'conflict') conflicts.push({ from, until: lines.length, part })
  }
  return { text: lines.join('\n'), conflicts }
}

// marks are the lines of one side that it has by itself.
function marks(parts: Part[], side: 'mine' | 'theirs') {
  const out: editor.IModelDeltaDecoration[] = []
  let at = 0
  for (const part of parts) {
    const own = part.kind === 'conflict' ? part[side] : part.lines
    if (part.kind === 'conflict' || part.kind === side) {
      if (own.length > 0) out.push({ range: new Range(at + 1, 1, at + own.length, 1), options: { isWholeLine: true, className: part.kind === 'conflict' ? 'files-conflict' : 'files-own' } })
      at += own.length
    } else if (part.kind === 'same') at += own.length
    else at += part.before
  }
  return out
}

function useColumn(text: string, decorations: editor.IModelDeltaDecoration[], label: string, readOnly: boolean, onReady?: (made: editor.IStandaloneCodeEditor) => void) {
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (!ref.current) return
    const model = editor.createModel(text, 'plaintext')
    model.setEOL(editor.EndOfLineSequence.LF)
    const made = editor.create(ref.current, { ...options, model, readOnly, ariaLabel: label, folding: false, stickyScroll: { enabled: false }, wordWrap: 'off' })
    made.createDecorationsCollection(decorations)
    onReady?.(made)
    return () => {
      made.dispose()
      model.dispose()
    }
  }, [text, decorations, label, readOnly]) // eslint-disable-line react-hooks/exhaustive-deps -- onReady is called once
  return ref
}

// ConflictView shows what I typed, what another saved, and what becomes of both.
export function ConflictView({ desk, doc, onClose }: { desk: Desk; doc: Doc; onClose: () => void }) {
  const w = useWords()
  const lang = useLang()
  const phone = usePhone()
  const [column, setColumn] = useState<Column>('result')
  const [mine] = useState(() => (doc.model ? textOf(doc.model) : ''))
  const theirs = doc.theirs?.text?.text ?? ''
  const { data: by } = useQuery(lastWrite(desk.at, doc.name, doc.theirs?.hash ?? ''))
  const parts = useMemo(() => merge(doc.base.split('\n'), mine.split('\n'), theirs.split('\n')), [doc.base, mine, theirs])
  const made = useMemo(() => layout(parts), [parts])
  const [left, right, none] = useMemo(() => [marks(parts, 'mine'), marks(parts, 'theirs'), []], [parts])
  const result = useRef<editor.IStandaloneCodeEditor>(null)
  const places = useRef<string[]>([])
  const [at, setAt] = useState(0)
  const mineRef = useColumn(mine, left, w.files.mine, true)
  const theirsRef = useColumn(theirs, right, w.files.theirs, true)
  const resultRef = useColumn(made.text, none, w.files.result, false, (ready) => {
    result.current = ready
    places.current = ready.getModel()?.deltaDecorations([], made.conflicts.map((one) => ({ range: new Range(one.from + 1, 1, one.until + 1, 1), options: { isWholeLine: true, className: 'files-conflict', stickiness: 1 } }))) ?? []
    const first = made.conflicts[0]
    if (first) ready.revealLineInCenter(first.from + 1)
  })
  const show = (i: number) => {
    setAt(i)
    const range = result.current?.getModel()?.getDecorationRange(places.current[i] ?? '')
    if (range) result.current?.revealLineInCenter(range.startLineNumber)
  }
  const choose = (side: Side) => {
    const model = result.current?.getModel()
    const conflict = made.conflicts[at]
    const range = model?.getDecorationRange(places.current[at] ?? '')
    if (!model || !conflict || !range) return
    const lines = chosen(conflict.part, side)
    const last = range.endLineNumber >= model.getLineCount() && range.endColumn > 1
    const text = lines.length === 0 ? '' : lines.join('\n') + (last ? '' : '\n')
    model.pushEditOperations([], [{ range, text }], () => null)
    const from = range.startLineNumber
    const until = last ? new Range(from, 1, model.getLineCount(), model.getLineMaxColumn(model.getLineCount())) : new Range(from, 1, from + lines.length, 1)
    const [id] = model.deltaDecorations([places.current[at] ?? ''], [{ range: until, options: { isWholeLine: true, className: 'files-chosen', stickiness: 1 } }])
    if (id) places.current[at] = id
    if (at + 1 < made.conflicts.length) show(at + 1)
  }
  const save = async () => {
    const model = result.current?.getModel()
    if (model && await desk.resolve(doc.name, textOf(model))) onClose()
  }
  const who = by ? `${line(actorOf(by))}, ${moment(by.started_at, lang)}` : ''
  const columns: { value: Column; label: string; note?: string }[] = [{ value: 'mine', label: w.files.mine }, { value: 'result', label: w.files.result }, { value: 'theirs', label: w.files.theirs, note: who }]
  const refs = { mine: mineRef, result: resultRef, theirs: theirsRef }
  return (
    <section aria-label={w.files.conflict} className="flex min-h-0 flex-1 flex-col">
      <div className="flex min-h-10 shrink-0 flex-wrap items-center gap-2 border-b bg-warn-soft px-4 py-1.5">
        <p role="status" className="min-w-0 flex-1">{made.conflicts.length === 0 ? w.files.noConflicts : w.files.conflicts(made.conflicts.length)}</p>
        {made.conflicts.length > 0 && (
          <>
            <IconButton label={w.files.previousConflict} disabled={at === 0} onClick={() => show(at - 1)}><ChevronUp /></IconButton>
            <span className="text-sm">{w.files.conflictOf(at + 1, made.conflicts.length)}</span>
            <IconButton label={w.files.nextConflict} disabled={at + 1 >= made.conflicts.length} onClick={() => show(at + 1)}><ChevronDown /></IconButton>
            <Button size="sm" onClick={() => choose('mine')}>{w.files.takeMine}</Button>
            <Button size="sm" onClick={() => choose('theirs')}>{w.files.takeTheirs}</Button>
            <Button size="sm" onClick={() => choose('both')}>{w.files.takeBoth}</Button>
          </>
        )}
        <Button size="sm" variant="ghost" onClick={onClose}>{w.act.cancel}</Button>
        <Button size="sm" variant="default" disabled={doc.saving} onClick={save}>{w.files.saveResult}</Button>
      </div>
      {phone && <div className="flex justify-center border-b p-1.5"><Segments label={w.files.conflict} value={column} onChange={setColumn} options={columns} /></div>}
      <div className="flex min-h-0 flex-1">
        {columns.map((one) => (
          <div key={one.value} className={phone && one.value !== column ? 'hidden' : 'flex min-w-0 flex-1 flex-col border-r last:border-r-0'}>
            {!phone && <h3 className="flex h-8 shrink-0 items-center gap-2 border-b px-4 text-sm font-medium">{one.label}{one.note && <span className="truncate font-normal text-muted-foreground">{one.note}</span>}</h3>}
            <div ref={refs[one.value]} className="min-h-0 flex-1" data-column={one.value} />
          </div>
        ))}
      </div>
    </section>
  )
}
