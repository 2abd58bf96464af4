// What others do with files shows: their lists are read anew, and open files
// are compared with what lies there.
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { filesKey, listKey } from '@/features/files/contents'
import type { Desk } from '@/features/files/desk'
import { type Name, parent } from '@/features/files/names'
import { type Operation, type Place, sandboxPath } from '@/lib/api'
import { useLive } from '@/lib/live'
import { changed, isRead, isRunning } from '@/lib/operation'

const gather = 500 // ms
const many = 5000 // entries, from which on a list is read anew less often
const rest = 15_000

export function useFollow(at: Place, desk: Desk, on: boolean) {
  const client = useQueryClient()
  const due = useRef(new Set<Name>())
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const read = () => {
    timer.current = undefined
    for (const name of due.current) {
      const state = client.getQueryState<{ entries: unknown[] }>(listKey(at, name))
      if ((state?.data?.entries.length ?? 0) > many && Date.now() - (state?.dataUpdatedAt ?? 0) < rest) {
        timer.current ??= setTimeout(read, rest)
        continue
      }
      due.current.delete(name)
      void client.invalidateQueries({ queryKey: listKey(at, name), exact: true })
    }
  }
  useLive<Operation>(on ? `${sandboxPath(at)}/events` : undefined, {
    onReset: () => void client.invalidateQueries({ queryKey: [...filesKey(at), 'list'] }),
    onEvents: (events) => {
      const touched = new Set<Name>()
      for (const op of events) {
        if (isRead(op.type) || isRunning(op)) continue
        const own = desk.list().some((doc) => doc.written === op.id)
        for (const path of paths(op)) {
          due.current.add(parent(path))
          due.current.add(path)
          if (!own) touched.add(path)
        }
        if (op.changes?.incomplete) for (const [key] of client.getQueriesData({ queryKey: [...filesKey(at), 'list'] })) if (typeof key[4] === 'string') due.current.add(key[4])
      }
      if (touched.size > 0) desk.changed((name) => touched.has(name))
      if (due.current.size > 0) timer.current ??= setTimeout(read, gather)
    },
  })
}

function paths(op: Operation): Name[] {
  const all = changed(op)
  const list = [...all.created, ...all.changed, ...all.deleted, op.file?.path ?? '', op.file?.old_path ?? '']
  return list.filter((one) => one.startsWith('/'))
}
