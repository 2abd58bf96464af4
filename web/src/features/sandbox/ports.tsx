import { ExternalLink } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { Notice } from '@/components/notice'
import { Button } from '@/components/ui/button'
import { Input } from '@/components/ui/input'
import { type Place, read, sandboxPath } from '@/lib/api'
import { kept } from '@/lib/kept'
import { useMay } from '@/lib/may'
import { label, useWords } from '@/lib/words'

const remembered = kept<string>('glassbox.port', (text) => (text && /^\d{1,5}$/.test(text) ? text : undefined))

// Ports leads to what a program in the sandbox serves, at a site of its own.
export function Ports({ at }: { at: Place }) {
  const w = useWords()
  const may = useMay('operator')
  const [port, setPort] = useState(remembered.get() ?? '8000')
  const [error, setError] = useState<unknown>()
  const number = Number(port)
  const right = Number.isInteger(number) && number >= 1 && number <= 65535
  const open = async (event: FormEvent) => {
    event.preventDefault()
    setError(undefined)
    try {
      const { url } = await read<{ url: string }>(`${sandboxPath(at)}/ports/${number}`)
      remembered.set(port)
      window.open(url, '_blank', 'noopener,noreferrer')
    } catch (wrong) {
      setError(wrong)
    }
  }
  return (
    <section className="border-t px-5 py-3 max-desk:px-4">
      <h2 className="pb-1 font-medium">{w.overview.ports}</h2>
      <form onSubmit={open} className="flex items-center gap-2">
        <Input aria-label={w.overview.port} inputMode="numeric" className="w-24" value={port} onChange={(event) => setPort(event.target.value.trim())} aria-invalid={!right} />
        <Button type="submit" disabled={!right || !may} title={may ? undefined : w.role.needs(label(w.role, 'operator'))}><ExternalLink />{w.overview.openPort}</Button>
      </form>
      <p className="pt-1 text-sm text-muted-foreground">{right ? w.overview.portHint : w.overview.portWrong}</p>
      {error !== undefined && <div className="pt-2"><Notice error={error} /></div>}
    </section>
  )
}
