// What can be done with files, the same from the tree, the folder and the keys.
import { useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { toast } from '@/components/ui/toast'
import { type Usage, archiveLink, contentLink, copy, isCode, listKey, move, stat } from '@/features/files/contents'
import type { Desk } from '@/features/files/desk'
import { type Item, leave, settle } from '@/features/files/leaving'
import { type Name, base, join, last, moved, parent, within } from '@/features/files/names'
import type { Picked } from '@/features/files/uploads'
import { Problem, type Place } from '@/lib/api'
import { line } from '@/lib/safe'
import { useWords } from '@/lib/words'

export type Asking =
  | { kind: 'file' | 'folder'; in: Name }
  | { kind: 'rename'; item: Item }
  | { kind: 'mode'; item: Item }
  | { kind: 'delete'; items: Item[] }
  | { kind: 'move' | 'copy'; items: Item[] }
  | { kind: 'upload'; in: Name; files: Picked[]; folders: string[] }

export type Clip = { items: Item[]; cut: boolean }

// The clipboard is the page's: it goes from sandbox to sandbox with nothing.
let clip: (Clip & { place: string }) | undefined

const save = (href: string) => {
  const link = document.createElement('a')
  link.href = href
  link.download = ''
  link.click()
}

export type Deeds = ReturnType<typeof useDeeds>

export function useDeeds(at: Place, desk: Desk, current: Name | undefined, onShow: (name: Name) => void) {
  const w = useWords()
  const client = useQueryClient()
  const [asking, setAsking] = useState<Asking>()
  const place = `${at.connection}/${at.sandbox}`
  const shown = useRef(current) // what is undone later asks what is shown then
  useEffect(() => {
    shown.current = current
  }, [current])
  const fresh = useCallback((...directories: Name[]) => Promise.all([
    ...directories.map((name) => client.invalidateQueries({ queryKey: listKey(at, name), exact: true })), client.invalidateQueries({ queryKey: ['files', at.connection, at.sandbox, 'stat'] }),
  ]), [client, at.connection, at.sandbox]) // eslint-disable-line react-hooks/exhaustive-deps -- at is these two
  return useMemo(() => {
    const fault = (error: unknown) => toast(error instanceof Problem ? line([error.message, error.advice].filter(Boolean).join('. ')) : line(String(error)), true)

    // relocate moves one thing, and can be taken back.
    const relocate = async (from: Name, to: Name, options: { replace?: boolean; quiet?: boolean } = {}) => {
      settle()
      await move(at, from, to, options.replace)
      desk.renamed(from, to)
      await fresh(parent(from), parent(to))
      if (shown.current && within(shown.current, from)) onShow(moved(shown.current, from, to))
      if (options.quiet) return
      toast(parent(from) === parent(to) ? w.files.renamed(line(base(from)), line(base(to))) : w.files.movedTo(line(base(from)), line(base(parent(to)))), false, options.replace ? undefined : { label: w.files.undo, ms: 10_000, run: () => void relocate(to, from, { quiet: true }).catch(fault) })
    }

    const relocateMany = async (items: Item[], directory: Name) => {
      const done: [Name, Name][] = []
      for (const { name } of items) {
        const to = join(directory, last(name))
        if (to === name) continue
        try {
          await relocate(name, to, { quiet: true })
          done.push([name, to])
        } catch (error) {
          if (isCode(error, 'file_exists')) toast(w.files.exists(line(base(name)), line(base(directory))), true, { label: w.files.replace, run: () => void relocate(name, to, { replace: true }).catch(fault) })
          else fault(error)
        }
      }
      if (done.length > 0) toast(w.files.movedMany(done.length, line(base(directory))), false, { label: w.files.undo, ms: 10_000, run: () => void (async () => { for (const [from, to] of done.reverse()) await relocate(to, from, { quiet: true }) })().catch(fault) })
    }

    const copyMany = async (items: Item[], directory: Name) => {
      settle()
      for (const { name } of items) {
        try {
          await copy(at, name, await free(at, directory, name))
        } catch (error) {
          fault(error)
        }
      }
      await fresh(directory)
    }

    const remove = (items: Item[], counted = new Map<Name, Usage>()) => {
      leave({ at, desk, client, items, counted, w })
      const gone = items.find((one) => shown.current && within(shown.current, one.name))
      if (gone && !desk.find(shown.current)?.dirty) onShow(parent(gone.name))
    }

    return {
      at, asking, ask: setAsking, fresh, fault, relocate, relocateMany, copyMany, removeNow: remove,
      remove: (items: Item[]) => (items.some((one) => one.entry.type === 'directory') ? setAsking({ kind: 'delete', items }) : items.length > 0 && remove(items)),
      hold: (items: Item[], cut: boolean) => {
        clip = items.length > 0 ? { items, cut, place } : undefined
        if (clip) toast((cut ? w.files.cutNote : w.files.copyNote)(items.length))
      },
      holds: () => clip?.place === place,
      paste: (directory: Name) => {
        if (!clip || clip.place !== place) return
        const { items, cut } = clip
        if (cut) clip = undefined
        void (cut ? relocateMany : copyMany)(items, directory)
      },
      download: (items: Item[]) => {
        const [first] = items
        if (!first) return
        if (items.length === 1) save(first.entry.type === 'directory' ? archiveLink(at, first.name) : contentLink(at, first.name))
        else for (const directory of new Set(items.map((one) => parent(one.name)))) save(archiveLink(at, directory, items.filter((one) => parent(one.name) === directory).map((one) => last(one.name))))
      },
    }
  }, [at.connection, at.sandbox, desk, client, onShow, asking, fresh, place, w]) // eslint-disable-line react-hooks/exhaustive-deps -- at is these two
}

// free finds a name in a directory that nobody has.
async function free(at: Place, directory: Name, name: Name): Promise<Name> {
  const text = base(name)
  const dot = text.lastIndexOf('.')
  const [stem, end] = dot > 0 ? [text.slice(0, dot), text.slice(dot)] : [text, '']
  for (let i = 1; i < 1000; i++) {
    const to = join(directory, i === 1 ? last(name) : `${stem} ${i}${end}`)
    try {
      await stat(at, to)
    } catch (error) {
      if (isCode(error, 'file_not_found')) return to
      throw error
    }
  }
  return join(directory, last(name))
}
