import { useState } from 'react'
import type { Entry } from '@/features/files/contents'
import type { Desk } from '@/features/files/desk'
import type { Name } from '@/features/files/names'
import { mayUnfold, useTree, useUnfolded } from '@/features/files/tree'
import { TreeView } from '@/features/files/tree-view'
import type { Place } from '@/lib/api'
import { useWords } from '@/lib/words'

type Props = { at: Place; desk: Desk; roots: Entry[]; home: Name; current: Name; onShow: (name: Name) => void }

const none: ReadonlySet<Name> = new Set()

export function TreePane({ at, roots, home, current, onShow }: Props) {
  const w = useWords()
  const { open, unfold, fold } = useUnfolded(at)
  const rows = useTree(at, roots, open, none)
  const [focused, setFocused] = useState<Name>(home)
  return (
    <aside aria-label={w.files.title} className="flex w-[252px] shrink-0 flex-col border-r">
      <div className="flex h-9 shrink-0 items-center border-b pr-2 pl-4"><h2 className="flex-1 font-medium">{w.files.title}</h2></div>
      <TreeView
        rows={rows} focused={focused} chosen={none} current={current} onFocus={setFocused} onKey={() => {}} onDragStart={() => {}}
        onFold={(name, on) => (on ? unfold(name) : fold(name))}
        onOpen={(row) => {
          if (mayUnfold(row.entry) && row.open) fold(row.name)
          else onShow(row.name)
        }}
      />
    </aside>
  )
}
