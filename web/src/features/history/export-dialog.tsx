import { useEffect, useRef, useState } from 'react'
import { Notice } from '@/components/notice'
import { Button } from '@/components/ui/button'
import { Dialog, DialogBody, DialogFoot } from '@/components/ui/dialog'
import { Field, Select } from '@/components/ui/input'
import { toast } from '@/components/ui/toast'
import { type Format, exportRows, saveAs } from '@/features/history/export'
import { type HistorySearch, shown } from '@/features/history/filter'
import type { Place } from '@/lib/api'
import { count } from '@/lib/format'
import { useWords } from '@/lib/words'

const formats: Format[] = ['jsonl', 'json', 'csv']

export function ExportDialog({ scope, search, onClose }: { scope?: Place; search: HistorySearch; onClose: () => void }) {
  const w = useWords()
  const [format, setFormat] = useState<Format>('jsonl')
  const [n, setN] = useState<number>()
  const [error, setError] = useState<unknown>()
  const stop = useRef<AbortController>(undefined)
  useEffect(() => () => stop.current?.abort(), [])
  const run = async () => {
    stop.current = new AbortController()
    setError(undefined)
    setN(0)
    try {
      const done = await exportRows(scope, search, format, (row) => shown(search, row), setN, stop.current.signal)
      saveAs(done.file, `glassbox-${scope?.sandbox ?? 'history'}.${format}`)
      toast(w.exporting.done(count(done.n)))
      onClose()
    } catch (wrong) {
      setN(undefined)
      if (!stop.current.signal.aborted) setError(wrong)
    }
  }
  return (
    <Dialog open onClose={onClose} title={w.exporting.title}>
      <DialogBody>
        <p className="text-muted-foreground">{w.exporting.what}</p>
        <Field label={w.exporting.format}>
          {(ids) => (
            <Select {...ids} value={format} onChange={(event) => setFormat(formats.find((one) => one === event.target.value) ?? 'jsonl')}>
              {formats.map((one) => <option key={one} value={one}>{w.exporting[one]}</option>)}
            </Select>
          )}
        </Field>
        {n !== undefined && <p role="status">{w.exporting.progress(count(n))}</p>}
        {error !== undefined && <Notice error={error} />}
      </DialogBody>
      <DialogFoot>
        <Button variant="ghost" onClick={onClose}>{w.act.cancel}</Button>
        <Button variant="default" onClick={run} disabled={n !== undefined}>{w.exporting.go}</Button>
      </DialogFoot>
    </Dialog>
  )
}
