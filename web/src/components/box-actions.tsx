import { Clock, Copy, MoreHorizontal, Pause, Play, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Confirm } from '@/components/confirm'
import { IconButton } from '@/components/ui/button'
import { Select } from '@/components/ui/input'
import { Menu, MenuItem, MenuLine } from '@/components/ui/menu'
import { toast } from '@/components/ui/toast'
import type { Sandbox } from '@/lib/api'
import { isGone, nameOf, placeOf, useBoxActions } from '@/lib/box'
import { useMay } from '@/lib/may'
import { line } from '@/lib/safe'
import { label, useWords } from '@/lib/words'

export type Asking = 'renew' | 'delete'
const lives = [600, 1800, 3600, 4 * 3600, 12 * 3600, 86400, 7 * 86400] as const

export function useLife() {
  const w = useWords()
  return (seconds: number) => (seconds < 3600 ? w.box.minutes(seconds / 60) : seconds < 86400 ? w.box.hours(seconds / 3600) : w.box.days(seconds / 86400))
}

export function LifeSelect({ value, onChange, none, ...rest }: { value: number; onChange: (seconds: number) => void; none?: string; id?: string; 'aria-label'?: string }) {
  const life = useLife()
  return (
    <Select value={value} onChange={(event) => onChange(Number(event.target.value))} {...rest}>
      {none && <option value={0}>{none}</option>}
      {lives.map((one) => <option key={one} value={one}>{life(one)}</option>)}
    </Select>
  )
}

// BoxDialogs asks before sandboxes are renewed or deleted.
export function BoxDialogs({ boxes, asking, onClose }: { boxes: Sandbox[]; asking?: Asking; onClose: (done?: boolean) => void }) {
  const w = useWords()
  const life = useLife()
  const actions = useBoxActions()
  const [seconds, setSeconds] = useState(3600)
  const [first] = boxes
  if (!first || !asking) return null
  const one = boxes.length === 1
  const name = line(one ? nameOf(first) : String(boxes.length))
  const each = async (run: (box: Sandbox) => Promise<void>) => {
    const done = await Promise.allSettled(boxes.map(run))
    const wrong = done.find((result) => result.status === 'rejected')
    if (wrong) throw wrong.reason
  }
  if (asking === 'renew') {
    return (
      <Confirm title={w.box.renewTitle(name)} ask={w.box.renewAsk} action={w.box.renew} danger={false} onClose={onClose} onDo={async () => {
        await each((box) => actions.renew(placeOf(box), seconds))
        toast(w.box.renewed(name, life(seconds)))
        onClose(true)
      }}>
        <LifeSelect aria-label={w.box.renewAsk} value={seconds} onChange={setSeconds} />
      </Confirm>
    )
  }
  return (
    <Confirm title={one ? w.box.deleteTitle(name) : w.box.deleteMany(boxes.length)} ask={one ? w.box.deleteAsk : w.box.deleteManyAsk} typed={one ? nameOf(first) : String(boxes.length)} action={one ? w.box.deleteDo : w.box.deleteManyDo} onClose={onClose} onDo={async () => {
      await each((box) => actions.remove(placeOf(box)))
      toast(w.box.deleted(name))
      onClose(true)
    }} />
  )
}

// useTurn pauses and resumes, and says what came of it.
export function useTurn() {
  const w = useWords()
  const actions = useBoxActions()
  return async (box: Sandbox, turn: 'pause' | 'resume') => {
    try {
      await actions[turn](placeOf(box))
      toast((turn === 'pause' ? w.box.paused : w.box.resumed)(line(nameOf(box))))
    } catch (error) {
      toast(error instanceof Error ? line(error.message) : String(error), true)
    }
  }
}

// BoxMenu is everything that can be done with one sandbox.
export function BoxMenu({ box, onAsk, trigger, turns = true }: { box: Sandbox; onAsk: (asking: Asking) => void; trigger?: ReactNode; turns?: boolean }) {
  const w = useWords()
  const turn = useTurn()
  const may = useMay('operator')
  const gone = isGone(box)
  const tip = may ? undefined : w.role.needs(label(w.role, 'operator'))
  return (
    <Menu trigger={trigger ?? <IconButton label={w.sandboxes.menu(line(nameOf(box)))}><MoreHorizontal /></IconButton>}>
      {turns && !gone && (box.state === 'Paused'
        ? <MenuItem disabled={!may} title={tip} onSelect={() => turn(box, 'resume')}><Play />{w.box.resume}</MenuItem>
        : <MenuItem disabled={!may || box.state !== 'Running'} title={tip} onSelect={() => turn(box, 'pause')}><Pause />{w.box.pause}</MenuItem>)}
      {!gone && <MenuItem disabled={!may} title={tip} onSelect={() => onAsk('renew')}><Clock />{w.box.renew}</MenuItem>}
      <MenuItem onSelect={() => navigator.clipboard.writeText(box.id)}><Copy />{w.box.copyId}</MenuItem>
      {!gone && <MenuLine />}
      {!gone && <MenuItem danger disabled={!may} title={tip} onSelect={() => onAsk('delete')}><Trash2 />{w.box.remove}</MenuItem>}
    </Menu>
  )
}
