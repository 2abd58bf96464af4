// The commands of a sandbox: those that run, those before, and how one is begun.
import { infiniteQueryOptions } from '@tanstack/react-query'
import { type Operation, type Page, type Place, ask, read, sandboxPath, send } from '@/lib/api'

export type Processes = Page<Operation> & { running?: Operation[] | null }

const path = (at: Place, id = '') => `${sandboxPath(at)}/commands${id && `/${encodeURIComponent(id)}`}`

export const commandsQuery = (at: Place) => infiniteQueryOptions({
  queryKey: ['commands', at.connection, at.sandbox], initialPageParam: '', refetchInterval: 3000,
  queryFn: ({ signal, pageParam }) => read<Processes>(`${path(at)}?limit=50${pageParam && `&cursor=${encodeURIComponent(pageParam)}`}`, signal), getNextPageParam: (page) => page.next_cursor,
})

export type Draft = { command: string; cwd: string; env: string; timeout: string; background: boolean; stdin: boolean }
export const emptyDraft: Draft = { command: '', cwd: '', env: '', timeout: '', background: false, stdin: false }

// draftOf is what would do the same again. Values of variables are not kept.
export const draftOf = (op: Operation): Draft => ({
  ...emptyDraft, command: op.command?.line ?? '', cwd: op.command?.cwd ?? '', timeout: op.command?.timeout_ms ? String(op.command.timeout_ms / 1000) : '', stdin: takesInput(op),
})

export const takesInput = (op: Operation) => typeof op.request === 'object' && op.request !== null && 'stdin' in op.request && op.request.stdin === true

// readEnv reads a variable a line; a line that is none is returned as wrong.
export function readEnv(text: string): { env: Record<string, string>; wrong?: string } {
  const env: Record<string, string> = {}
  for (const one of text.split('\n').filter((line) => line.trim())) {
    const [, name, value] = /^\s*([A-Za-z_]\w*)=(.*)$/.exec(one) ?? []
    if (!name) return { env, wrong: one }
    env[name] = value ?? ''
  }
  return { env }
}

export async function start(at: Place, draft: Draft): Promise<string> {
  const { env } = readEnv(draft.env)
  const body = {
    command: draft.command, operation_id: crypto.randomUUID(), cwd: draft.cwd.trim() || undefined, env: Object.keys(env).length > 0 ? env : undefined,
    timeout_ms: draft.timeout ? Math.round(Number(draft.timeout) * 1000) : undefined, background: draft.background || undefined, stdin: draft.stdin || undefined,
  }
  return (await send<{ operation_id: string }>('POST', path(at), body)).operation_id
}

export const signal = (at: Place, id: string, name: 'INT' | 'TERM' | 'KILL') => send('POST', `${path(at, id)}/signal`, { signal: name })

export async function input(at: Place, id: string, text: string, close = false) {
  await ask(`${path(at, id)}/input${close ? '?close=true' : ''}`, { method: 'POST', headers: { 'Content-Type': 'application/octet-stream' }, body: new TextEncoder().encode(text) })
}
