import { Link } from '@tanstack/react-router'
import { Download, Pencil, RotateCcw, Square, X } from 'lucide-react'
import { type FormEvent, useEffect, useEffectEvent, useState } from 'react'
import { StatusGlyph } from '@/components/glyph'
import { Notice } from '@/components/notice'
import { CopyButton, Took } from '@/components/text'
import { Button, IconButton } from '@/components/ui/button'
import { Input } from '@/components/ui/input'
import { Tag } from '@/components/ui/tag'
import { input, signal, takesInput } from '@/features/commands/commands'
import { LiveOutput, useFollow } from '@/features/commands/live-output'
import { type Operation, type Place, operationPath, prefix } from '@/lib/api'
import { isRunning } from '@/lib/operation'
import { visible } from '@/lib/safe'
import { useWords } from '@/lib/words'

type Props = { at: Place; op: Operation; running: boolean; onAgain: () => void; onEdit: () => void; onEnd: () => void; onClose: () => void }

// CommandPane is one command with its output, as long as it runs and after.
export function CommandPane({ at, op, running, onAgain, onEdit, onEnd, onClose }: Props) {
  const w = useWords()
  const output = useFollow(at, op.id)
  // The stream tells the end before the list does.
  const live = isRunning(op) && !output.ended
  const tell = useEffectEvent(onEnd)
  useEffect(() => {
    if (output.ended) tell()
  }, [output.ended])
  const code = output.ended?.exit_code ?? op.command?.exit_code
  return (
    <section aria-label={w.commands.one} className="flex min-h-0 min-w-0 flex-1 flex-col">
      <div className="flex shrink-0 items-start gap-2 border-b px-4 py-2 max-phone:flex-wrap">
        <span className="pt-1.5"><StatusGlyph op={output.ended ? { ...op, status: output.ended.status } : op} /></span>
        <pre className="max-h-24 min-w-0 flex-1 overflow-auto py-1 max-phone:order-last max-phone:basis-full font-mono text-sm break-all whitespace-pre-wrap">{visible(op.command?.line ?? '')}</pre>
        <span className="flex shrink-0 items-center gap-1 pt-0.5 text-muted-foreground max-phone:flex-1 max-phone:justify-end">
          {!live && code !== undefined && code !== 0 && <Tag tone="fail">{w.history.exit(code)}</Tag>}
          <span className="px-1"><Took op={output.ended ? { ...op, status: output.ended.status, duration_ms: output.ended.duration_ms } : op} /></span>
          {live && <Stop at={at} id={op.id} />}
          {!live && running && <Button size="sm" onClick={onAgain}><RotateCcw />{w.commands.again}</Button>}
          {running && <IconButton label={w.commands.edit} onClick={onEdit}><Pencil /></IconButton>}
          <CopyButton text={op.command?.line ?? ''} label={w.details.shell} />
          <IconButton label={w.act.close} onClick={onClose}><X /></IconButton>
        </span>
      </div>
      {output.problem && <div className="p-3"><Notice error={output.problem} /></div>}
      <LiveOutput output={output} />
      {live && takesInput(op) && <InputLine at={at} id={op.id} />}
      <div className="flex h-9 shrink-0 items-center gap-2 border-t px-4 text-sm max-desk:h-11">
        <Button asChild size="sm" variant="ghost"><Link to="/sandboxes/$connection/$sandbox/history" params={at} search={{ op: op.id }}>{w.commands.operation}</Link></Button>
        <span className="flex-1" />
        {(['stdout', 'stderr'] as const).map((stream) => output.bytes[stream] > 0 && (
          <Button key={stream} asChild size="sm" variant="ghost"><a href={`${prefix}${operationPath(at, op.id)}/output?stream=${stream}`} download={`${op.id}.${stream}`} aria-label={w.details.downloadOut(stream)}><Download />{stream}</a></Button>
        ))}
      </div>
    </section>
  )
}

const patience = 3000

// Stop interrupts; what does not end of that can be killed.
function Stop({ at, id }: { at: Place; id: string }) {
  const w = useWords()
  const [asked, setAsked] = useState<'no' | 'asked' | 'late'>('no')
  const [error, setError] = useState<unknown>()
  useEffect(() => {
    if (asked !== 'asked') return
    const timer = setTimeout(() => setAsked('late'), patience)
    return () => clearTimeout(timer)
  }, [asked])
  const send = async (name: 'INT' | 'KILL') => {
    setAsked('asked')
    setError(undefined)
    await signal(at, id, name).catch(setError)
  }
  return (
    <>
      {error !== undefined && <span role="alert" className="text-fail">{error instanceof Error ? error.message : String(error)}</span>}
      {asked === 'late' ? <Button size="sm" variant="destructive" onClick={() => void send('KILL')}><Square />{w.commands.kill}</Button>
        : <Button size="sm" disabled={asked === 'asked'} onClick={() => void send('INT')}><Square />{asked === 'asked' ? w.commands.stopping : w.commands.stop}</Button>}
    </>
  )
}

function InputLine({ at, id }: { at: Place; id: string }) {
  const w = useWords()
  const [text, setText] = useState('')
  const [closed, setClosed] = useState(false)
  const [error, setError] = useState<unknown>()
  const send = async (event: FormEvent) => {
    event.preventDefault()
    const line = text
    setText('')
    await input(at, id, `${line}\n`).catch((wrong) => { setError(wrong); setText(line) })
  }
  const end = () => void input(at, id, '', true).then(() => setClosed(true), setError)
  return (
    <form onSubmit={send} className="flex shrink-0 flex-col gap-2 border-t px-4 py-2">
      <div className="flex items-center gap-2">
        <Input aria-label={w.commands.input} placeholder={w.commands.input} className="font-mono text-sm" value={text} onChange={(event) => setText(event.target.value)} disabled={closed} autoComplete="off" spellCheck={false} />
        <Button type="submit" size="sm" disabled={closed}>{w.commands.send}</Button>
        <Button size="sm" variant="ghost" disabled={closed} onClick={end}>{w.commands.eof}</Button>
      </div>
      {error !== undefined && <Notice error={error} />}
    </form>
  )
}
