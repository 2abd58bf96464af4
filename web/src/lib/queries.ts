// What is asked of the server, and under which key its answer is kept.
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import {
  type Connection, type Me, type Operation, type Page, type Place, type Sandbox, type Sandboxes, type SignIn, type Token, type User, ask, operationPath, query, read, sandboxPath,
} from '@/lib/api'

export const meQuery = queryOptions({ queryKey: ['me'], queryFn: ({ signal }) => read<Me>('/auth/me', signal), staleTime: 60_000 })

// all reads a list to its end, which is for lists that people make.
async function all<T>(path: string, signal: AbortSignal): Promise<T[]> {
  const out: T[] = []
  let cursor: string | undefined
  do {
    const page: Page<T> = await read(`${path}${path.includes('?') ? '&' : '?'}limit=200${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, signal)
    out.push(...page.items)
    cursor = page.next_cursor
  } while (cursor)
  return out
}

export const connectionsQuery = queryOptions({ queryKey: ['connections'], queryFn: async ({ signal }) => (await read<Page<Connection>>('/connections', signal)).items })
export const usersQuery = queryOptions({ queryKey: ['users'], queryFn: ({ signal }) => all<User>('/users', signal) })
export const tokensQuery = (everybody: boolean) => queryOptions({ queryKey: ['tokens', everybody], queryFn: ({ signal }) => all<Token>(`/tokens${everybody ? '?all=true' : ''}`, signal) })
export const signInsQuery = (everybody: boolean) => queryOptions({ queryKey: ['sign-ins', everybody], queryFn: ({ signal }) => all<SignIn>(`/sign-ins${everybody ? '?all=true' : ''}`, signal) })

// The server tells no changes of sandboxes, so it is asked every two seconds.
export const sandboxesQuery = infiniteQueryOptions({
  queryKey: ['sandboxes'], initialPageParam: '', refetchInterval: 2000,
  queryFn: ({ signal, pageParam }) => read<Sandboxes>(`/sandboxes${query({ limit: 200, cursor: pageParam })}`, signal),
  getNextPageParam: (page) => page.next_cursor,
})

export const sandboxQuery = (at: Place) => queryOptions<Sandbox>({
  queryKey: ['sandbox', at.connection, at.sandbox], refetchInterval: (asked) => (asked.state.error ? 5000 : 1000), queryFn: ({ signal }) => read<Sandbox>(sandboxPath(at), signal),
})

export const operationQuery = (at: Place, id: string) => queryOptions({
  queryKey: ['operation', at.connection, at.sandbox, id], queryFn: ({ signal }) => read<Operation>(operationPath(at, id), signal),
})

export type Stream = 'stdout' | 'stderr'

// readOutput reads a part of what a command printed.
export async function readOutput(at: Place, id: string, stream: Stream, from: number, to: number, signal: AbortSignal): Promise<Uint8Array> {
  if (to <= from) return new Uint8Array()
  const answer = await ask(`${operationPath(at, id)}/output${query({ stream })}`, { headers: { Range: `bytes=${from}-${to - 1}` }, signal })
  return new Uint8Array(await answer.arrayBuffer())
}
