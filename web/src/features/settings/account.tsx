import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { Notice } from '@/components/notice'
import { Text } from '@/components/text'
import { Button } from '@/components/ui/button'
import { Field, Input } from '@/components/ui/input'
import { toast } from '@/components/ui/toast'
import { type User, send } from '@/lib/api'
import { meQuery } from '@/lib/queries'
import { label, useWords } from '@/lib/words'

export function Account() {
  const w = useWords()
  const { data: me } = useQuery(meQuery)
  if (!me) return null
  const facts = [[w.settings.you, <Text key="" of={me.user.name} />], [w.settings.role, label(w.role, me.user.role)], [w.settings.via, label(w.settings, `via_${me.via}`)], [w.settings.version, <Text key="" of={me.version} className="font-mono text-sm" />]] as const
  return (
    <>
      <dl>{facts.map(([name, value]) => <div key={name} className="flex gap-3 py-1"><dt className="w-40 shrink-0 text-muted-foreground">{name}</dt><dd>{value}</dd></div>)}</dl>
      <Password has={me.user.has_password} />
    </>
  )
}

function Password({ has }: { has: boolean }) {
  const w = useWords()
  const client = useQueryClient()
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const [error, setError] = useState<unknown>()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setError(undefined)
    try {
      await send<User>('PUT', '/auth/password', { current: has ? current : undefined, new: next })
      await client.invalidateQueries({ queryKey: ['me'] })
      toast(w.settings.passwordDone)
      setCurrent('')
      setNext('')
    } catch (wrong) {
      setError(wrong)
    }
  }
  return (
    <form onSubmit={submit} className="flex max-w-80 flex-col gap-3 border-t pt-5">
      <h2 className="font-medium">{w.settings.password}</h2>
      <p className="text-muted-foreground">{has ? w.settings.passwordHas : w.settings.passwordNone}</p>
      {has && <Field label={w.settings.current}>{(ids) => <Input {...ids} type="password" autoComplete="current-password" required value={current} onChange={(event) => setCurrent(event.target.value)} />}</Field>}
      <Field label={w.settings.next}>{(ids) => <Input {...ids} type="password" autoComplete="new-password" required value={next} onChange={(event) => setNext(event.target.value)} />}</Field>
      {error !== undefined && <Notice error={error} />}
      <Button type="submit" className="self-start">{has ? w.settings.passwordDo : w.settings.passwordSet}</Button>
    </form>
  )
}
