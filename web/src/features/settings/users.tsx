import { useQuery, useQueryClient } from '@tanstack/react-query'
import { MoreHorizontal } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { Confirm } from '@/components/confirm'
import { Notice, Skeleton } from '@/components/notice'
import { Text } from '@/components/text'
import { Button, IconButton } from '@/components/ui/button'
import { Dialog, DialogBody, DialogFoot } from '@/components/ui/dialog'
import { Field, Input, Select } from '@/components/ui/input'
import { Menu, MenuItem, MenuLine } from '@/components/ui/menu'
import { Tag } from '@/components/ui/tag'
import { toast } from '@/components/ui/toast'
import { Once } from '@/features/settings/tokens'
import { type User, send } from '@/lib/api'
import { meQuery, usersQuery } from '@/lib/queries'
import { line } from '@/lib/safe'
import { label, useWords } from '@/lib/words'

const roles = ['viewer', 'operator', 'admin'] as const

export function Users() {
  const w = useWords()
  const client = useQueryClient()
  const { data: me } = useQuery(meQuery)
  const list = useQuery(usersQuery)
  const [making, setMaking] = useState(false)
  const [removing, setRemoving] = useState<User>()
  const [link, setLink] = useState<{ user: User; url: string }>()
  const [error, setError] = useState<unknown>()
  const fresh = () => client.invalidateQueries({ queryKey: ['users'] })
  const attempt = async (run: () => Promise<unknown>) => {
    setError(undefined)
    try {
      await run()
      await fresh()
    } catch (wrong) {
      setError(wrong)
    }
  }
  const change = (user: User, body: { role?: string; disabled?: boolean }) => attempt(async () => {
    await send('PATCH', `/users/${user.id}`, body)
    toast(w.settings.userSaved(line(user.name)))
  })
  const makeLink = (user: User) => attempt(async () => {
    const made = await send<{ link: string }>('POST', `/users/${user.id}/link`)
    setLink({ user, url: location.origin + made.link })
  })
  return (
    <>
      <div className="flex"><span className="flex-1" /><Button variant="default" onClick={() => setMaking(true)}>{w.settings.userNew}</Button></div>
      {(list.error ?? error) != null && <Notice error={list.error ?? error} onRetry={() => list.refetch()} />}
      {list.isPending && !list.error && <Skeleton rows={3} />}
      <ul>
        {list.data?.map((user) => (
          <li key={user.id} className="flex items-center gap-3 border-b py-2">
            <p className="flex min-w-0 flex-1 items-center gap-2"><span className="truncate font-medium"><Text of={user.name} /></span><Tag>{user.has_password ? w.settings.hasPassword : w.settings.linkOnly}</Tag>{user.disabled && <Tag tone="warn">{w.settings.userDisabled}</Tag>}</p>
            <Select aria-label={`${w.settings.role}: ${line(user.name)}`} value={user.role} onChange={(event) => change(user, { role: event.target.value })} disabled={user.id === me?.user.id} className="w-32">
              {roles.map((role) => <option key={role} value={role}>{label(w.role, role)}</option>)}
            </Select>
            <Menu trigger={<IconButton label={w.sandboxes.menu(line(user.name))}><MoreHorizontal /></IconButton>}>
              <MenuItem onSelect={() => makeLink(user)}>{w.settings.userLink}</MenuItem>
              <MenuItem disabled={user.id === me?.user.id} onSelect={() => change(user, { disabled: !user.disabled })}>{user.disabled ? w.settings.userEnable : w.settings.userDisable}</MenuItem>
              <MenuLine />
              <MenuItem danger disabled={user.id === me?.user.id} onSelect={() => setRemoving(user)}>{w.settings.userRemove}</MenuItem>
            </Menu>
          </li>
        ))}
      </ul>
      {making && <UserDialog onClose={() => setMaking(false)} onMade={fresh} />}
      {removing && <Confirm title={w.settings.userRemoveTitle(line(removing.name))} ask={w.settings.userRemoveAsk} typed={removing.name} action={w.settings.userRemove} onClose={() => setRemoving(undefined)} onDo={async () => {
        await send('DELETE', `/users/${removing.id}`)
        await fresh()
        toast(w.settings.userRemoved(line(removing.name)))
      }} />}
      {link && (
        <Dialog open onClose={() => setLink(undefined)} title={w.settings.userLinkTitle(line(link.user.name))}>
          <DialogBody><Once text={link.url} hint={w.settings.userLinkOnce} /></DialogBody>
          <DialogFoot><Button variant="default" onClick={() => setLink(undefined)}>{w.act.close}</Button></DialogFoot>
        </Dialog>
      )}
    </>
  )
}

function UserDialog({ onClose, onMade }: { onClose: () => void; onMade: () => Promise<void> }) {
  const w = useWords()
  const [name, setName] = useState('')
  const [role, setRole] = useState('viewer')
  const [password, setPassword] = useState('')
  const [error, setError] = useState<unknown>()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    try {
      await send('POST', '/users', { name: name.trim(), role, password: password || undefined })
      await onMade()
      toast(w.settings.userSaved(line(name)))
      onClose()
    } catch (wrong) {
      setError(wrong)
    }
  }
  return (
    <Dialog open onClose={onClose} title={w.settings.userNew}>
      <form onSubmit={submit} className="contents">
        <DialogBody>
          <Field label={w.settings.userName}>{(ids) => <Input {...ids} autoFocus required value={name} onChange={(event) => setName(event.target.value)} autoComplete="off" />}</Field>
          <Field label={w.settings.role}>{(ids) => <Select {...ids} value={role} onChange={(event) => setRole(event.target.value)}>{roles.map((one) => <option key={one} value={one}>{label(w.role, one)}</option>)}</Select>}</Field>
          <Field label={w.settings.userPassword} hint={w.settings.userPasswordHint}>{(ids) => <Input {...ids} type="password" autoComplete="new-password" value={password} onChange={(event) => setPassword(event.target.value)} />}</Field>
          {error !== undefined && <Notice error={error} />}
        </DialogBody>
        <DialogFoot><Button variant="ghost" onClick={onClose}>{w.act.cancel}</Button><Button type="submit" variant="default">{w.settings.userDo}</Button></DialogFoot>
      </form>
    </Dialog>
  )
}
