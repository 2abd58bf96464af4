// The keys of files, the same in the tree and in the folder.
import type { KeyboardEvent } from 'react'
import type { Deeds } from '@/features/files/deeds'
import type { Item } from '@/features/files/leaving'
import type { Name } from '@/features/files/names'

export function shortcut(event: KeyboardEvent, deeds: Deeds, items: Item[], directory: Name) {
  const control = event.ctrlKey || event.metaKey
  const [first] = items
  const run = (act: () => void) => {
    event.preventDefault()
    act()
  }
  if (event.key === 'F2' && first) run(() => deeds.ask({ kind: 'rename', item: first }))
  else if (event.key === 'Delete') run(() => deeds.remove(items))
  else if (control && event.key === 'c') run(() => deeds.hold(items, false))
  else if (control && event.key === 'x') run(() => deeds.hold(items, true))
  else if (control && event.key === 'v') run(() => deeds.paste(directory))
}
