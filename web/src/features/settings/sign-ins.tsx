import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Notice, Skeleton } from '@/components/notice'
import { Text } from '@/components/text'
import { Button } from '@/components/ui/button'
import { Checkbox } from '@/components/ui/input'
import { Tag } from '@/components/ui/tag'
import { toast } from '@/components/ui/toast'
import { send } from '@/lib/api'
import { moment } from '@/lib/format'
import { useMay } from '@/lib/may'
import { signInsQuery } from '@/lib/queries'
import { label, useLang, useWords } from '@/lib/words'

export function SignIns() {
  const w = useWords()
  const lang = useLang()
  const client = useQueryClient()
  const admin = useMay('admin')
  const [everybody, setEverybody] = useState(false)
  const [error, setError] = useState<unknown>()
  const list = useQuery(signInsQuery(everybody && admin))
  const end = async (id: string) => {
    setError(undefined)
    try {
      await send('DELETE', `/sign-ins/${id}`)
      await client.invalidateQueries({ queryKey: ['sign-ins'] })
      toast(w.settings.signInEnded)
    } catch (wrong) {
      setError(wrong)
    }
  }
  return (
    <>
      {admin && <label className="flex items-center gap-2"><Checkbox checked={everybody} onChange={(event) => setEverybody(event.target.checked)} />{w.settings.everybody}</label>}
      {(list.error ?? error) != null && <Notice error={list.error ?? error} onRetry={() => list.refetch()} />}
      {list.isPending && !list.error && <Skeleton rows={3} />}
      <ul>
        {list.data?.map((one) => (
          <li key={one.id} className="flex items-center gap-3 border-b py-2">
            <div className="min-w-0 flex-1">
              <p className="flex items-center gap-2 truncate font-medium"><span className="truncate"><Text of={everybody ? `${one.user_name}, ${one.address}` : one.address} /></span>{one.current && <Tag tone="live">{w.settings.signInHere}</Tag>}</p>
              <p className="truncate text-sm text-muted-foreground"><Text of={one.agent} /></p>
              <p className="text-sm text-muted-foreground">{label(w.settings, `via_${one.how}`)}{' · '}{w.settings.seen(moment(one.seen_at, lang))}{' · '}{w.settings.until(moment(one.expires_at, lang))}</p>
            </div>
            {!one.current && <Button size="sm" onClick={() => end(one.id)}>{w.settings.signInEnd}</Button>}
          </li>
        ))}
      </ul>
    </>
  )
}
