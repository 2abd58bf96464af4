// The terminals of a sandbox: those that are open, and those before.
import { queryOptions } from '@tanstack/react-query'
import { type Operation, type Page, type Place, read, sandboxPath, send } from '@/lib/api'

export type Processes = Page<Operation> & { running?: Operation[] | null }

export const terminalsQuery = (at: Place) => queryOptions({
  queryKey: ['terminals', at.connection, at.sandbox], refetchInterval: 3000, queryFn: ({ signal }) => read<Processes>(`${sandboxPath(at)}/terminals?limit=10`, signal),
})

// open starts a shell, which stays when everybody goes. The screen tells its
// size as soon as it is there.
export async function open(at: Place): Promise<string> {
  const started = await send<{ operation_id: string }>('POST', `${sandboxPath(at)}/terminals`, { columns: 100, rows: 30, operation_id: crypto.randomUUID() })
  return started.operation_id
}

export const end = (at: Place, id: string) => send('DELETE', `${sandboxPath(at)}/terminals/${encodeURIComponent(id)}`)
