import { Play, SlidersHorizontal } from 'lucide-react'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { Notice } from '@/components/notice'
import { Button } from '@/components/ui/button'
import { Checkbox, Field, Input, TextArea } from '@/components/ui/input'
import { type Draft, emptyDraft, readEnv } from '@/features/commands/commands'
import { useWords } from '@/lib/words'

type Props = { draft: Draft; onDraft: (draft: Draft) => void; earlier: string[]; disabled: boolean; error: unknown; onRun: (draft: Draft) => void }

// RunForm is the line that a command is written on. Enter runs it, arrow-up
// brings those before.
export function RunForm({ draft, onDraft, earlier, disabled, error, onRun }: Props) {
  const w = useWords()
  const line = useRef<HTMLTextAreaElement>(null)
  const [more, setMore] = useState(false)
  const [back, setBack] = useState(-1)
  const wrongEnv = readEnv(draft.env).wrong
  const wrongTime = draft.timeout && !(Number(draft.timeout) > 0)
  const optional = draft.cwd || draft.env || draft.timeout || draft.background || draft.stdin
  const ready = !disabled && draft.command.trim() !== '' && !wrongEnv && !wrongTime
  useEffect(() => line.current?.focus(), [])
  const run = (background = draft.background) => {
    if (!ready) return
    setBack(-1)
    onRun({ ...draft, background })
  }
  const step = (by: number) => {
    const to = Math.max(-1, Math.min(earlier.length - 1, back + by))
    setBack(to)
    onDraft({ ...draft, command: to < 0 ? '' : (earlier[to] ?? '') })
  }
  const keys = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    const { selectionStart, value } = event.currentTarget
    if (event.nativeEvent.isComposing) return
    if (event.key === 'Enter' && !event.shiftKey) run(event.ctrlKey || event.metaKey ? true : undefined)
    else if (event.key === 'ArrowUp' && !value.slice(0, selectionStart).includes('\n') && earlier.length > 0) step(1)
    else if (event.key === 'ArrowDown' && back >= 0 && !value.slice(selectionStart).includes('\n')) step(-1)
    else return
    event.preventDefault()
  }
  return (
    <div className="flex shrink-0 flex-col gap-2 border-b px-5 py-2.5 max-desk:px-4">
      <div className="flex items-start gap-2">
        <TextArea ref={line} aria-label={w.commands.line} placeholder={w.commands.placeholder} title={w.commands.keys} rows={Math.min(8, draft.command.split('\n').length)} className="min-h-[30px] flex-1 resize-none py-[5px]" spellCheck={false} autoCapitalize="off" autoComplete="off" value={draft.command} onChange={(event) => onDraft({ ...draft, command: event.target.value })} onKeyDown={keys} disabled={disabled} />
        <Button aria-expanded={more} aria-label={w.commands.options} title={w.commands.options} onClick={() => setMore(!more)} className={optional ? 'text-brand' : ''}><SlidersHorizontal /></Button>
        <Button variant="default" disabled={!ready} onClick={() => run()}><Play />{w.commands.run}</Button>
      </div>
      {more && (
        <div className="grid grid-cols-[1fr_1fr_1fr] gap-3 max-desk:grid-cols-1">
          <Field label={w.commands.cwd} hint={w.commands.cwdHint}>{(ids) => <Input {...ids} value={draft.cwd} onChange={(event) => onDraft({ ...draft, cwd: event.target.value })} spellCheck={false} />}</Field>
          <Field label={w.commands.timeout} hint={w.commands.timeoutHint} wrong={wrongTime ? w.commands.timeoutWrong : undefined}>{(ids) => <Input {...ids} inputMode="decimal" value={draft.timeout} onChange={(event) => onDraft({ ...draft, timeout: event.target.value })} />}</Field>
          <Field label={w.create.env} hint={w.commands.envHint} wrong={wrongEnv ? w.create.bad(wrongEnv) : undefined}>{(ids) => <TextArea {...ids} value={draft.env} onChange={(event) => onDraft({ ...draft, env: event.target.value })} spellCheck={false} />}</Field>
          <label className="flex items-center gap-2"><Checkbox checked={draft.background} onChange={(event) => onDraft({ ...draft, background: event.target.checked })} />{w.commands.background}</label>
          <label className="flex items-center gap-2"><Checkbox checked={draft.stdin} onChange={(event) => onDraft({ ...draft, stdin: event.target.checked })} />{w.commands.stdin}</label>
          <Button size="sm" variant="ghost" className="justify-self-start" onClick={() => onDraft({ ...emptyDraft, command: draft.command })}>{w.commands.reset}</Button>
        </div>
      )}
      {error !== null && error !== undefined && <Notice error={error} />}
    </div>
  )
}
