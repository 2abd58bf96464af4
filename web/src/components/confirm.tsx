import { type FormEvent, type ReactNode, useState } from 'react'
import { Notice } from '@/components/notice'
import { Button } from '@/components/ui/button'
import { Dialog, DialogBody, DialogFoot } from '@/components/ui/dialog'
import { Input } from '@/components/ui/input'
import { useWords } from '@/lib/words'

type Props = { title: string; ask: ReactNode; action: string; typed?: string; onDo: () => Promise<unknown>; onClose: () => void; danger?: boolean; children?: ReactNode }

// Confirm asks before what cannot come back; with typed only who types it may.
export function Confirm({ title, ask, action, typed, onDo, onClose, danger = true, children }: Props) {
  const w = useWords()
  const [given, setGiven] = useState('')
  const [error, setError] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const run = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      await onDo()
      onClose()
    } catch (wrong) {
      setError(wrong)
      setBusy(false)
    }
  }
  return (
    <Dialog open onClose={onClose} title={title}>
      <form onSubmit={run} className="contents">
        <DialogBody>
          <div className="text-muted-foreground">{ask}</div>
          {typed !== undefined && (
            <>
              <p className="font-mono text-sm font-medium break-all select-text">{typed}</p>
              <Input aria-label={title} value={given} onChange={(event) => setGiven(event.target.value)} autoFocus autoComplete="off" spellCheck={false} />
            </>
          )}
          {children}
          {error !== undefined && <Notice error={error} />}
        </DialogBody>
        <DialogFoot>
          <Button variant="ghost" onClick={onClose}>{w.act.cancel}</Button>
          <Button type="submit" variant={danger ? 'destructive' : 'default'} disabled={busy || (typed !== undefined && given.trim() !== typed.trim())}>{action}</Button>
        </DialogFoot>
      </form>
    </Dialog>
  )
}
