import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Notice } from '@/components/notice'
import { Text } from '@/components/text'
import { Button } from '@/components/ui/button'
import { Dialog, DialogBody, DialogFoot } from '@/components/ui/dialog'
import type { Asking, Deeds } from '@/features/files/deeds'
import { FolderPicker } from '@/features/files/dialogs'
import { type Name, base, path } from '@/features/files/names'
import { begin, taken } from '@/features/files/uploads'
import { size } from '@/lib/format'
import { line } from '@/lib/safe'
import { useWords } from '@/lib/words'

const shown = 5

// UploadDialog asks where to, and what becomes of files that are there.
export function UploadDialog({ asking, deeds, onClose }: { asking: Asking & { kind: 'upload' }; deeds: Deeds; onClose: () => void }) {
  const w = useWords()
  const client = useQueryClient()
  const { at } = deeds
  const { files, folders } = asking
  const [where, setWhere] = useState<Name>(asking.in)
  const [error, setError] = useState<unknown>()
  const there = useQuery({ queryKey: ['taken', at.connection, at.sandbox, where, files.length], gcTime: 0, staleTime: 0, retry: false, queryFn: () => taken(client, at, where, files) })
  const old = there.data ?? new Set<string>()
  const bytes = files.reduce((n, one) => n + one.file.size, 0)
  const run = async (replace: boolean) => {
    try {
      onClose()
      await begin({ client, at, directory: where, files: replace ? files : files.filter((one) => !old.has(one.path)), folders, replace: replace ? old : new Set() })
      await deeds.fresh(where)
    } catch (wrong) {
      setError(wrong)
      deeds.fault(wrong)
    }
  }
  return (
    <Dialog open onClose={onClose} title={w.files.uploadTitle(files.length === 1 && files[0] ? line(files[0].path) : w.files.things(files.length))}>
      <DialogBody>
        <p className="text-muted-foreground">{w.files.uploadAsk(size(bytes), line(base(where)))}</p>
        <FolderPicker at={at} value={where} onChange={setWhere} />
        {old.size > 0 && (
          <div role="alert" className="border-l-2 border-warn bg-warn-soft px-3 py-2">
            <p>{w.files.taken(old.size, files.length)}</p>
            <ul className="font-mono text-sm">{[...old].slice(0, shown).map((one) => <li key={one} className="truncate"><Text of={one} /></li>)}</ul>
            {old.size > shown && <p className="text-sm">{w.details.moreFiles(old.size - shown)}</p>}
          </div>
        )}
        {error !== undefined && <Notice error={error} />}
      </DialogBody>
      <DialogFoot>
        <Button variant="ghost" onClick={onClose}>{w.act.cancel}</Button>
        {old.size > 0 && old.size < files.length && <Button onClick={() => run(false)}>{w.files.skipThem(old.size)}</Button>}
        <Button variant={old.size > 0 ? 'destructive' : 'default'} disabled={there.isPending} onClick={() => run(true)} title={path(where)}>{old.size > 0 ? w.files.replaceThem(old.size) : w.files.uploadDo}</Button>
      </DialogFoot>
    </Dialog>
  )
}
