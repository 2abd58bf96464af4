// What a name in the address is: a directory, or a file.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type Entry, filesKey, isCode, listKey, listQuery, stat } from '@/features/files/contents'
import { type Name, nameOf, parent } from '@/features/files/names'
import type { Place } from '@/lib/api'

export type What = { kind?: 'directory' | 'file'; entry?: Entry; error?: unknown; retry: () => void }

export function useWhat(at: Place, name: Name | undefined, isOpen: boolean): What {
  const client = useQueryClient()
  const known = name === undefined ? undefined : client.getQueryData<{ entries: Entry[] }>(listKey(at, parent(name)))?.entries.find((one) => nameOf(one) === name)
  const asked = useQuery({ queryKey: [...filesKey(at), 'stat', name], enabled: name !== undefined && !known && !isOpen, retry: false, queryFn: ({ signal }) => stat(at, name ?? '/', signal) })
  const entry = known ?? asked.data
  const link = entry?.type === 'link'
  const list = useQuery({ ...listQuery(at, name ?? '/'), enabled: !isOpen && link })
  const retry = () => void asked.refetch()
  if (name === undefined || isOpen) return { kind: isOpen ? 'file' : undefined, entry, retry }
  if (!entry) return { error: asked.error ?? undefined, retry }
  if (!link) return { kind: entry.type === 'directory' ? 'directory' : 'file', entry, retry }
  if (list.data) return { kind: 'directory', entry, retry }
  return list.error ? (isCode(list.error, 'not_directory') ? { kind: 'file', entry, retry } : { entry, error: list.error, retry }) : { entry, retry }
}
