import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { Logo } from '@/components/logo'
import { CopyButton } from '@/components/text'
import { Notice } from '@/components/notice'
import { Title } from '@/components/page'
import { Button } from '@/components/ui/button'
import { Field, Input } from '@/components/ui/input'
import { type Me, send } from '@/lib/api'
import { meQuery } from '@/lib/queries'
import { useWords } from '@/lib/words'

// SignInPage takes the link that is in the address, or a name and a password.
export function SignInPage({ onIn }: { onIn: () => void }) {
  const w = useWords()
  const client = useQueryClient()
  const [error, setError] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const [linked, setLinked] = useState(false)
  const begun = useRef('')

  const enter = async (path: string, body: unknown) => {
    setBusy(true)
    setError(undefined)
    try {
      const me = await send<Me>('POST', path, body)
      client.clear()
      client.setQueryData(meQuery.queryKey, me)
      onIn()
    } catch (wrong) {
      setError(wrong)
      setBusy(false)
    }
  }

  useEffect(() => {
    const take = () => {
      const link = decodeURIComponent(location.hash.slice(1))
      if (!link || begun.current === link) return
      begun.current = link
      setLinked(true)
      // The secret goes out of the address, and so of the browser's history.
      history.replaceState(history.state, '', location.pathname + location.search)
      void enter('/auth/link', { link })
    }
    take()
    addEventListener('hashchange', take)
    return () => removeEventListener('hashchange', take)
  })

  const submit = (event: FormEvent) => {
    event.preventDefault()
    void enter('/auth/password', { name, password })
  }
  return (
    <main className="grid h-full place-items-center overflow-y-auto p-4">
      <Title text={w.signIn.title} />
      <div className="flex w-full max-w-[360px] flex-col gap-5">
        <div className="flex items-center gap-3">
          <Logo className="size-7" />
          <h1 className="text-xl font-semibold">{w.signIn.title}</h1>
        </div>
        {error !== undefined && <Notice error={error} />}
        {linked && busy && <p role="status" className="text-muted-foreground">{w.signIn.using}</p>}
        <div className="flex flex-col gap-1.5">
          <p>{w.signIn.link}</p>
          <p className="flex items-center justify-between rounded-md border bg-muted py-0.5 pr-0.5 pl-2.5 font-mono text-sm">{w.signIn.command}<CopyButton text={w.signIn.command} /></p>
          <p className="text-sm text-muted-foreground">{w.signIn.used}</p>
        </div>
        <form onSubmit={submit} className="flex flex-col gap-3 border-t pt-5">
          <h2 className="font-medium">{w.signIn.or}</h2>
          <Field label={w.signIn.name}>{(ids) => <Input {...ids} value={name} onChange={(event) => setName(event.target.value)} autoComplete="username" required />}</Field>
          <Field label={w.signIn.password}>{(ids) => <Input {...ids} type="password" value={password} onChange={(event) => setPassword(event.target.value)} autoComplete="current-password" required />}</Field>
          <Button type="submit" variant="default" disabled={busy}>{w.signIn.submit}</Button>
        </form>
      </div>
    </main>
  )
}
