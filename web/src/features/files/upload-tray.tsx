import { useQueryClient } from '@tanstack/react-query'
import { Check, CircleAlert, X } from 'lucide-react'
import { Text } from '@/components/text'
import { Button, IconButton } from '@/components/ui/button'
import { again, cancelUploads, closeUploads, uploadName, useUploads, wasCancelled, wasThere } from '@/features/files/uploads'
import { size } from '@/lib/format'
import { line } from '@/lib/safe'
import { useWords } from '@/lib/words'

const shown = 6

// UploadTray tells how far uploads are.
export function UploadTray() {
  const w = useWords()
  const client = useQueryClient()
  const list = useUploads()
  if (list.length === 0) return null
  const going = list.filter((one) => one.state === 'waiting' || one.state === 'sending')
  const failed = list.filter((one) => one.state === 'failed')
  const all = list.reduce((n, one) => n + one.file.size, 0)
  const sent = list.reduce((n, one) => n + (one.state === 'done' ? one.file.size : one.sent), 0)
  const done = list.filter((one) => one.state === 'done').length
  const rows = [...failed, ...list.filter((one) => one.state === 'sending'), ...list.filter((one) => one.state === 'waiting'), ...list.filter((one) => one.state === 'done').reverse()]
  return (
    <section aria-label={w.files.uploads} className="fixed right-4 bottom-4 z-30 w-80 max-w-[calc(100vw-32px)] rounded-lg border bg-popover shadow-floating max-desk:bottom-18">
      <div className="flex items-center gap-2 py-1.5 pr-1.5 pl-3">
        <p role="status" className="min-w-0 flex-1 font-medium">{going.length > 0 ? w.files.uploading(done + failed.length + 1, list.length) : failed.length > 0 ? w.files.uploadFailed(failed.length) : w.files.uploaded(done)}</p>
        {going.length > 0 ? <Button size="sm" onClick={cancelUploads}>{w.act.cancel}</Button> : <IconButton label={w.act.close} onClick={closeUploads}><X /></IconButton>}
      </div>
      {going.length > 0 && <div role="progressbar" aria-label={w.files.uploads} aria-valuenow={all ? Math.round((sent / all) * 100) : 0} aria-valuemin={0} aria-valuemax={100} className="mx-3 mb-1 h-1 rounded-full bg-muted"><div className="h-full rounded-full bg-brand" style={{ width: `${all ? (sent / all) * 100 : 0}%` }} /></div>}
      <ul className="max-h-64 overflow-y-auto px-3 pb-2">
        {rows.slice(0, shown).map((one) => (
          <li key={one.id} className="flex min-h-7 items-center gap-2 text-sm">
            {one.state === 'done' ? <Check aria-hidden className="size-3.5 shrink-0 text-ok" /> : one.state === 'failed' ? <CircleAlert aria-hidden className="size-3.5 shrink-0 text-fail" /> : <span className="size-3.5 shrink-0" />}
            <span className="min-w-0 flex-1 truncate"><Text of={uploadName(one)} />{one.state === 'failed' && <span className="text-fail"> {wasCancelled(one) ? w.status.cancelled : wasThere(one) ? w.files.isThere : one.error instanceof Error ? line(one.error.message) : ''}</span>}</span>
            {one.state === 'failed' ? <Button size="sm" variant="ghost" onClick={() => again(client, one.id, wasThere(one))}>{wasThere(one) ? w.files.replace : w.act.retry}</Button> : <span className="text-faint">{one.state === 'sending' ? `${one.file.size ? Math.round((one.sent / one.file.size) * 100) : 0}%` : size(one.file.size)}</span>}
          </li>
        ))}
        {rows.length > shown && <li className="text-sm text-faint">{w.details.moreFiles(rows.length - shown)}</li>}
      </ul>
    </section>
  )
}
