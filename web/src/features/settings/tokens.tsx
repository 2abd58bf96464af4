import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { LifeSelect } from '@/components/box-actions'
import { Confirm } from '@/components/confirm'
import { Empty, Notice, Skeleton } from '@/components/notice'
import { CopyButton, Text } from '@/components/text'
import { Button } from '@/components/ui/button'
import { Dialog, DialogBody, DialogFoot } from '@/components/ui/dialog'
import { Checkbox, Field, Input } from '@/components/ui/input'
import { Tag } from '@/components/ui/tag'
import { toast } from '@/components/ui/toast'
import { type NewToken, type Token, send } from '@/lib/api'
import { moment } from '@/lib/format'
import { useMay } from '@/lib/may'
import { tokensQuery } from '@/lib/queries'
import { line } from '@/lib/safe'
import { label, useLang, useWords } from '@/lib/words'

const scopes = ['sandboxes:read', 'sandboxes:write', 'history:read', 'connections:read', 'connections:write', 'admin'] as const

export function Tokens() {
  const w = useWords()
  const lang = useLang()
  const client = useQueryClient()
  const admin = useMay('admin')
  const [everybody, setEverybody] = useState(false)
  const [making, setMaking] = useState(false)
  const [revoking, setRevoking] = useState<Token>()
  const list = useQuery(tokensQuery(everybody && admin))
  const fresh = () => client.invalidateQueries({ queryKey: ['tokens'] })
  return (
    <>
      <div className="flex items-center gap-3">
        {admin && <label className="flex items-center gap-2"><Checkbox checked={everybody} onChange={(event) => setEverybody(event.target.checked)} />{w.settings.everybody}</label>}
        <span className="flex-1" /><Button variant="default" onClick={() => setMaking(true)}>{w.settings.tokenNew}</Button>
      </div>
      {list.error && <Notice error={list.error} onRetry={() => list.refetch()} />}
      {list.isPending && !list.error && <Skeleton rows={3} />}
      {list.data?.length === 0 && <Empty text={w.settings.tokenNone} />}
      <ul className="empty:hidden">
        {list.data?.map((one) => (
          <li key={one.id} className="flex items-center gap-3 border-b py-2">
            <div className="min-w-0 flex-1">
              <p className="truncate font-medium"><Text of={one.name} /> {everybody && <span className="font-normal text-muted-foreground"><Text of={one.user_name} /></span>}</p>
              <p className="text-sm text-muted-foreground">{one.seen_at ? w.settings.tokenUsed(moment(one.seen_at, lang)) : w.settings.tokenUnused}{' · '}{w.settings.until(moment(one.expires_at, lang))}</p>
              <p className="flex flex-wrap gap-1 pt-1">{one.scopes.map((scope) => <Tag key={scope} tone={scope === 'admin' ? 'warn' : 'plain'}>{scope}</Tag>)}</p>
            </div>
            <Button size="sm" onClick={() => setRevoking(one)}>{w.settings.revoke}</Button>
          </li>
        ))}
      </ul>
      {making && <TokenDialog onClose={() => setMaking(false)} onMade={fresh} />}
      {revoking && <Confirm title={w.settings.revokeTitle(line(revoking.name))} ask={w.settings.revokeAsk} action={w.settings.revokeDo} onClose={() => setRevoking(undefined)} onDo={async () => {
        await send('DELETE', `/tokens/${revoking.id}`)
        await fresh()
        toast(w.settings.revoked(line(revoking.name)))
      }} />}
    </>
  )
}

function TokenDialog({ onClose, onMade }: { onClose: () => void; onMade: () => Promise<void> }) {
  const w = useWords()
  const [name, setName] = useState('')
  const [seconds, setSeconds] = useState(86400)
  const [chosen, setChosen] = useState<string[]>(['sandboxes:read', 'history:read'])
  const [made, setMade] = useState<NewToken>()
  const [error, setError] = useState<unknown>()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setError(undefined)
    try {
      setMade(await send<NewToken>('POST', '/tokens', { name: name.trim(), scopes: chosen, expires_in_seconds: seconds }))
      await onMade()
    } catch (wrong) {
      setError(wrong)
    }
  }
  return (
    <Dialog open onClose={onClose} title={w.settings.tokenNew}>
      {made ? (
        <>
          <DialogBody><Once text={made.secret} hint={w.settings.tokenOnce} /></DialogBody>
          <DialogFoot><Button variant="default" onClick={onClose}>{w.act.close}</Button></DialogFoot>
        </>
      ) : (
        <form onSubmit={submit} className="contents">
          <DialogBody>
            <Field label={w.settings.tokenName}>{(ids) => <Input {...ids} autoFocus required maxLength={128} value={name} onChange={(event) => setName(event.target.value)} />}</Field>
            <Field label={w.settings.tokenLife}>{(ids) => <LifeSelect {...ids} value={seconds} onChange={setSeconds} />}</Field>
            <fieldset className="flex flex-col gap-1.5">
              <legend className="pb-1 text-base font-medium">{w.settings.tokenScopes}</legend>
              {scopes.map((scope) => <label key={scope} className="flex items-center gap-2 text-base"><Checkbox checked={chosen.includes(scope)} onChange={(event) => setChosen(event.target.checked ? [...chosen, scope] : chosen.filter((one) => one !== scope))} />{label(w.settings.scopes, scope)} <span className="font-mono text-sm text-faint">{scope}</span></label>)}
            </fieldset>
            {error !== undefined && <Notice error={error} />}
          </DialogBody>
          <DialogFoot><Button variant="ghost" onClick={onClose}>{w.act.cancel}</Button><Button type="submit" variant="default" disabled={chosen.length === 0}>{w.settings.tokenDo}</Button></DialogFoot>
        </form>
      )}
    </Dialog>
  )
}

// Once shows a secret that is told this once.
export function Once({ text, hint }: { text: string; hint: string }) {
  return (
    <>
      <p className="text-base text-muted-foreground">{hint}</p>
      <p className="flex items-center gap-1 rounded-md border bg-muted py-0.5 pr-0.5 pl-2.5"><code className="min-w-0 flex-1 text-sm break-all">{text}</code><CopyButton text={text} /></p>
    </>
  )
}
