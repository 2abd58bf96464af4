import { useEffect, useMemo, useState } from 'react'
import { imageType } from '@/features/files/opening'
import { type Name, base } from '@/features/files/names'
import { size } from '@/lib/format'
import { line } from '@/lib/safe'
import { useWords } from '@/lib/words'

// useImage gives bytes an address, in which an image runs no script.
function useImage(name: Name, bytes: Uint8Array | string): string {
  const url = useMemo(() => URL.createObjectURL(new Blob([typeof bytes === 'string' ? bytes : new Uint8Array(bytes)], { type: imageType(name) })), [name, bytes])
  useEffect(() => () => URL.revokeObjectURL(url), [url])
  return url
}

export function ImageView({ name, bytes, onBroken }: { name: Name; bytes: Uint8Array | string; onBroken?: () => void }) {
  const w = useWords()
  const url = useImage(name, bytes)
  const [dimensions, setDimensions] = useState('')
  const [whole, setWhole] = useState(true)
  const [broken, setBroken] = useState(false)
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div tabIndex={0} role="region" aria-label={line(base(name))} className="flex min-h-0 flex-1 overflow-auto bg-[repeating-conic-gradient(var(--muted)_0_25%,var(--background)_0_50%)] bg-[length:16px_16px] p-4">
        {broken ? <p className="m-auto rounded-md bg-background px-3 py-2 text-muted-foreground">{w.files.noImage}</p> : (
          <img
            src={url} alt={line(base(name))} className={whole ? 'm-auto max-h-full max-w-full object-contain' : 'm-auto max-w-none'}
            onLoad={(event) => setDimensions(`${event.currentTarget.naturalWidth} × ${event.currentTarget.naturalHeight}`)} onError={() => { setBroken(true); onBroken?.() }}
          />
        )}
      </div>
      <p className="flex h-7 shrink-0 items-center gap-4 border-t px-4 text-sm text-muted-foreground"><span>{dimensions}</span><span>{size(typeof bytes === 'string' ? new Blob([bytes]).size : bytes.length)}</span><span className="flex-1" /><button type="button" className="hover:text-foreground" aria-pressed={!whole} onClick={() => setWhole(!whole)}>{whole ? w.files.fullSize : w.files.fit}</button></p>
    </div>
  )
}
