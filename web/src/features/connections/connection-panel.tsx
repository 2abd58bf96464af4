import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { Notice } from '@/components/notice'
import { Button } from '@/components/ui/button'
import { Dialog, DialogBody, DialogFoot } from '@/components/ui/dialog'
import { Checkbox, Field, Input } from '@/components/ui/input'
import { toast } from '@/components/ui/toast'
import { type Connection, Problem, send } from '@/lib/api'
import { line } from '@/lib/safe'
import { useWords } from '@/lib/words'

// ConnectionPanel adds a service, or changes one.
export function ConnectionPanel({ of, onClose }: { of?: Connection; onClose: () => void }) {
  const w = useWords()
  const client = useQueryClient()
  const [name, setName] = useState(of?.name ?? '')
  const [endpoint, setEndpoint] = useState(of?.endpoint ?? '')
  const [key, setKey] = useState('')
  const [proxy, setProxy] = useState(of?.server_proxy ?? true)
  const [enabled, setEnabled] = useState(of?.enabled ?? true)
  const [error, setError] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    const body = { name: name.trim(), endpoint: endpoint.trim(), key: key || undefined, server_proxy: proxy, enabled }
    try {
      if (of) await send('PATCH', `/connections/${of.id}`, body, { 'If-Match': `"${of.revision}"` })
      else await send('POST', '/connections', body)
      await client.invalidateQueries({ queryKey: ['connections'] })
      await client.invalidateQueries({ queryKey: ['sandboxes'] })
      toast(w.connections.saved(line(body.name)))
      onClose()
    } catch (wrong) {
      const changed = wrong instanceof Problem && wrong.status === 412
      if (changed) await client.invalidateQueries({ queryKey: ['connections'] })
      setError(changed ? new Error(w.connections.changedMeanwhile) : wrong)
      setBusy(false)
    }
  }
  const wrong = (field: string) => (error instanceof Problem ? error.fields.find((one) => one.name.includes(field))?.problem : undefined)
  const check = 'flex items-center gap-2'
  return (
    <Dialog open onClose={onClose} title={of ? w.connections.edit : w.connections.addTitle} side className="w-[400px]">
      <form onSubmit={submit} className="contents">
        <DialogBody>
          <Field label={w.connections.name} wrong={wrong('name')}>{(ids) => <Input {...ids} required autoFocus value={name} onChange={(event) => setName(event.target.value)} />}</Field>
          <Field label={w.connections.endpoint} wrong={wrong('endpoint')}>{(ids) => <Input {...ids} required type="url" placeholder="https://sandboxes.example" value={endpoint} onChange={(event) => setEndpoint(event.target.value)} className="font-mono text-sm" />}</Field>
          <Field label={w.connections.key} hint={of?.has_key ? w.connections.keyKeep : w.connections.keyHint} wrong={wrong('key')}>{(ids) => <Input {...ids} type="password" autoComplete="off" value={key} onChange={(event) => setKey(event.target.value)} />}</Field>
          <label className={check}><Checkbox checked={proxy} onChange={(event) => setProxy(event.target.checked)} />{w.connections.proxy}</label>
          <p className="-mt-2 pl-6 text-sm text-muted-foreground">{w.connections.proxyHint}</p>
          <label className={check}><Checkbox checked={enabled} onChange={(event) => setEnabled(event.target.checked)} />{w.connections.enabled}</label>
          {error !== undefined && <Notice error={error} />}
        </DialogBody>
        <DialogFoot>
          <Button variant="ghost" onClick={onClose}>{w.act.cancel}</Button>
          <Button type="submit" variant="default" disabled={busy}>{of ? w.connections.saveDo : w.connections.addDo}</Button>
        </DialogFoot>
      </form>
    </Dialog>
  )
}
