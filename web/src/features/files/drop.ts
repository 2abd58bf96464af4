// Where something is dropped: files of this machine are uploaded, files of the
// sandbox are moved.
import { type DragEvent, useState } from 'react'
import type { Entry } from '@/features/files/contents'
import type { Deeds } from '@/features/files/deeds'
import { type Name, isName, within } from '@/features/files/names'
import { picked } from '@/features/files/uploads'

export const dragged = 'application/x-glassbox-files'

export function useDropTarget(deeds: Deeds, resolve: (target: Name | undefined) => Name) {
  const [target, setTarget] = useState<Name | null>(null) // null: nothing is dragged here
  const drop = async (event: DragEvent, at: Name) => {
    const ours = event.dataTransfer.getData(dragged)
    if (!ours) {
      const found = await picked(event.dataTransfer)
      if (found.files.length + found.folders.length > 0) deeds.ask({ kind: 'upload', in: at, ...found })
      return
    }
    const told: unknown = JSON.parse(ours)
    const names = (Array.isArray(told) ? told : []).filter(isName).filter((name) => !within(at, name))
    const entry: Entry = { name: '', path: '', type: 'file', size: 0, mode: '', modified_at: '' } // moving asks for the name alone
    if (names.length > 0) await deeds.relocateMany(names.map((name) => ({ name, entry })), at)
  }
  const handlers = (name: Name | undefined) => ({
    onDragOver: (event: DragEvent) => {
      if (!event.dataTransfer.types.includes('Files') && !event.dataTransfer.types.includes(dragged)) return
      event.preventDefault()
      event.stopPropagation()
      const to = resolve(name)
      if (target !== to) setTarget(to)
    },
    onDragLeave: (event: DragEvent) => {
      if (!event.currentTarget.contains(event.relatedTarget instanceof Node ? event.relatedTarget : null)) setTarget(null)
    },
    onDrop: (event: DragEvent) => {
      event.preventDefault()
      event.stopPropagation()
      setTarget(null)
      void drop(event, resolve(name)).catch(deeds.fault)
    },
  })
  return { target: target ?? undefined, over: target !== null, handlers }
}
