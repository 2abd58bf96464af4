import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { LifeSelect } from '@/components/box-actions'
import { Notice } from '@/components/notice'
import { Button } from '@/components/ui/button'
import { Dialog, DialogBody, DialogFoot } from '@/components/ui/dialog'
import { Field, Input, Select, TextArea } from '@/components/ui/input'
import { toast } from '@/components/ui/toast'
import { type NewSandbox, Problem, type Sandbox, send } from '@/lib/api'
import { span } from '@/lib/format'
import { useNow } from '@/lib/hooks'
import { connectionsQuery } from '@/lib/queries'
import { line } from '@/lib/safe'
import { useLang, useWords } from '@/lib/words'

const blank = { connection: '', image: 'host', name: '', seconds: 3600, cpu: '', memory: '', workdir: '', env: '', labels: '', network: '' }

// pairs reads NAME=value, one a line.
function pairs(text: string): Record<string, string> {
  const list = text.split('\n').filter((one) => one.trim() !== '')
  const bad = list.find((one) => one.indexOf('=') < 1)
  if (bad !== undefined) throw new PairError(bad)
  return Object.fromEntries(list.map((one) => [one.slice(0, one.indexOf('=')).trim(), one.slice(one.indexOf('=') + 1)]))
}

class PairError extends Error {}

function specOf(form: typeof blank): NewSandbox {
  const limits = Object.fromEntries(Object.entries({ cpu: form.cpu.trim(), memory: form.memory.trim() }).filter(([, value]) => value))
  return {
    image: form.image.trim(), name: form.name.trim() || undefined, expires_in_seconds: form.seconds || undefined, workdir: form.workdir.trim() || undefined,
    network: form.network === 'none' || form.network === 'proxy' ? form.network : undefined, env: pairs(form.env), metadata: pairs(form.labels), limits,
  }
}

export function CreatePanel({ onClose }: { onClose: () => void }) {
  const w = useWords()
  const lang = useLang()
  const client = useQueryClient()
  const navigate = useNavigate()
  const { data } = useQuery(connectionsQuery)
  const [form, setForm] = useState(blank)
  const [error, setError] = useState<unknown>()
  const [since, setSince] = useState(0)
  const now = useNow(200)
  const usable = (data ?? []).filter((one) => one.enabled)
  const connection = form.connection || usable[0]?.id || ''
  const set = (name: keyof typeof blank) => (event: { target: { value: string } }) => setForm({ ...form, [name]: event.target.value })
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setError(undefined)
    try {
      const spec = specOf(form)
      setSince(Date.now())
      const box = await send<Sandbox>('POST', `/connections/${connection}/sandboxes`, spec)
      await client.invalidateQueries({ queryKey: ['sandboxes'] })
      toast(w.create.created(line(box.name || box.id)))
      await navigate({ to: '/sandboxes/$connection/$sandbox/overview', params: { connection: box.connection, sandbox: box.id } })
    } catch (wrong) {
      setError(wrong instanceof PairError ? new Error(w.create.bad(wrong.message)) : wrong)
      setSince(0)
    }
  }
  const wrong = (name: string) => (error instanceof Problem ? error.fields.find((one) => one.name.includes(name))?.problem : undefined)
  return (
    <Dialog open onClose={onClose} title={w.create.title} side>
      <form onSubmit={submit} onKeyDown={(event) => event.key === 'Enter' && event.ctrlKey && event.currentTarget.requestSubmit()} className="contents">
        <DialogBody>
          <Field label={w.create.connection}>{(ids) => <Select {...ids} value={connection} onChange={set('connection')}>{usable.map((one) => <option key={one.id} value={one.id}>{line(one.name)}</option>)}</Select>}</Field>
          <Field label={w.create.image} hint={w.create.imageHint} wrong={wrong('image')}>{(ids) => <Input {...ids} required value={form.image} onChange={set('image')} className="font-mono text-sm" spellCheck={false} />}</Field>
          <Field label={w.create.name} hint={w.create.nameHint} wrong={wrong('name')}>{(ids) => <Input {...ids} autoFocus maxLength={128} value={form.name} onChange={set('name')} />}</Field>
          <Field label={w.create.life}>{(ids) => <LifeSelect {...ids} value={form.seconds} none={w.create.lifeService} onChange={(seconds) => setForm({ ...form, seconds })} />}</Field>
          <details className="flex flex-col border-t pt-3">
            <summary className="font-medium text-brand">{w.create.more}</summary>
            <div className="flex flex-col gap-3 pt-3">
              <div className="grid grid-cols-2 gap-3">
                <Field label={w.create.cpu}>{(ids) => <Input {...ids} placeholder="500m" value={form.cpu} onChange={set('cpu')} />}</Field>
                <Field label={w.create.memory}>{(ids) => <Input {...ids} placeholder="512Mi" value={form.memory} onChange={set('memory')} />}</Field>
              </div>
              <Field label={w.create.workdir}>{(ids) => <Input {...ids} placeholder="/workspace" value={form.workdir} onChange={set('workdir')} className="font-mono text-sm" />}</Field>
              <Field label={w.create.env} hint={w.create.envHint}>{(ids) => <TextArea {...ids} value={form.env} onChange={set('env')} spellCheck={false} />}</Field>
              <Field label={w.create.labels} hint={w.create.labelsHint}>{(ids) => <TextArea {...ids} value={form.labels} onChange={set('labels')} spellCheck={false} />}</Field>
              <Field label={w.create.network}>{(ids) => <Select {...ids} value={form.network} onChange={set('network')}><option value="">{w.create.networkDefault}</option><option value="proxy">{w.create.networkProxy}</option><option value="none">{w.create.networkNone}</option></Select>}</Field>
            </div>
          </details>
          {error !== undefined && <Notice error={error} />}
        </DialogBody>
        <DialogFoot>
          {since > 0 && <span role="status" className="mr-auto text-base text-muted-foreground">{w.create.working(span(Math.max(0, now - since), lang))} {now - since > 3000 && w.create.keepOpen}</span>}
          <Button variant="ghost" onClick={onClose}>{since > 0 ? w.act.close : w.act.cancel}</Button>
          <Button type="submit" variant="default" disabled={since > 0 || !connection}>{w.create.submit}</Button>
        </DialogFoot>
      </form>
    </Dialog>
  )
}
