// Who changed a file: the operations of the history that did.
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { type Name, path } from '@/features/files/names'
import { type Operation, type Page, type Place, query, read, sandboxPath } from '@/lib/api'

const changing = ['file.write', 'file.edit', 'file.append', 'file.delete', 'file.move', 'file.upload', 'file.chmod', 'command.execute', 'terminal.session']

export const versionsQuery = (at: Place, name: Name) => infiniteQueryOptions({
  queryKey: ['versions', at.connection, at.sandbox, name], initialPageParam: '', staleTime: 2000,
  queryFn: ({ signal, pageParam }) => read<Page<Operation>>(`${sandboxPath(at)}/operations${query({ path: path(name), type: changing, limit: 50, cursor: pageParam })}`, signal),
  getNextPageParam: (page) => page.next_cursor,
})

// lastWrite is who wrote a file last; hash tells which content is meant.
export const lastWrite = (at: Place, name: Name, hash: string) => queryOptions({
  queryKey: ['last-write', at.connection, at.sandbox, name, hash], enabled: hash !== '', retry: false,
  queryFn: async ({ signal }) => {
    const { items } = await read<Page<Operation>>(`${sandboxPath(at)}/operations${query({ path: path(name), type: changing, limit: 20 })}`, signal)
    return items.find((one) => one.file?.after_hash === hash) ?? items.find((one) => did(one, name)) ?? null
  },
})

// did is what an operation did to a file; a command that only names it did nothing.
export function did(op: Operation, name: Name): 'created' | 'changed' | 'deleted' | undefined {
  const text = path(name)
  for (const kind of ['created', 'changed', 'deleted'] as const) if (op.changes?.[kind]?.some((one) => one.path === text)) return kind
  if (!op.file || op.status !== 'succeeded') return undefined
  return op.type === 'file.delete' ? 'deleted' : op.file.before_hash || op.type !== 'file.write' ? 'changed' : 'created'
}
