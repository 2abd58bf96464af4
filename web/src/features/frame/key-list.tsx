import { Dialog, DialogBody } from '@/components/ui/dialog'
import { Kbd } from '@/components/ui/tag'
import { useWords } from '@/lib/words'

const keys = [
  ['Ctrl K', 'palette'], ['/', 'filter'], ['j', 'next'], ['k', 'previous'], ['Enter', 'open'], ['Esc', 'close'], ['x', 'select'], ['N', 'create'],
  ['n', 'nextFailure'], ['f', 'failures'], ['g', 'group'], ['o', 'order'], ['y', 'copy'], ['.', 'live'], ['[', 'rail'], ['?', 'help'],
] as const

export function KeyList({ onClose }: { onClose: () => void }) {
  const w = useWords()
  return (
    <Dialog open onClose={onClose} title={w.keys.title}>
      <DialogBody>
        <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 pb-3">
          {keys.map(([key, name]) => <div key={key} className="contents"><dt><Kbd>{key}</Kbd></dt><dd>{w.keys[name]}</dd></div>)}
        </dl>
      </DialogBody>
    </Dialog>
  )
}
