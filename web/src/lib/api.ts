// The one place that speaks with the server.
import type { components } from '@/gen/api'

type Schemas = components['schemas']
export type Operation = Schemas['Operation']
export type Hit = Schemas['Hit']
export type Sandbox = Schemas['Sandbox']
export type Sandboxes = Schemas['Sandboxes']
export type NewSandbox = Schemas['NewSandbox']
export type Answering = Schemas['Answering']
export type Connection = Schemas['Connection']
export type Report = Schemas['Report']
export type Me = Schemas['Me']
export type User = Schemas['User']
export type Token = Schemas['Token']
export type NewToken = Schemas['NewToken']
export type SignIn = Schemas['SignIn']
export type ProblemBody = Schemas['Problem']

export type Page<T> = { items: T[]; next_cursor?: string }

// Problem is an error as the server tells it. Code decides, never text.
export class Problem extends Error {
  readonly status: number
  readonly code: string
  readonly advice: string
  readonly request: string
  readonly fields: { name: string; problem: string }[]

  constructor(status: number, body: Partial<ProblemBody>) {
    super(body.detail || body.title || String(status))
    this.status = status
    this.code = body.code || 'unknown'
    this.advice = body.advice || ''
    this.request = body.request_id || ''
    this.fields = body.fields ?? []
  }
}

export const unreachable = 'unreachable'
export const prefix = '/api/v1'

// onSignedOut are told when the server knows this browser no longer.
export const onSignedOut = new Set<() => void>()

export async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  let response
  try {
    response = await fetch(prefix + path, { credentials: 'same-origin', ...options })
  } catch (cause) {
    if (options.signal?.aborted) throw cause
    throw new Problem(0, { code: unreachable })
  }
  if (response.ok) return response
  if (response.status === 401) for (const tell of onSignedOut) tell()
  throw new Problem(response.status, await response.json().catch(() => ({})))
}

export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await ask(path, { signal })).json()
}

export async function send<T = void>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
  const response = await ask(path, {
    method,
    headers: body === undefined ? headers : { 'Content-Type': 'application/json', ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  return response.status === 204 ? JSON.parse('null') : response.json()
}

// query writes what is set; a list is repeated.
export function query(fields: Record<string, string | number | string[] | null | undefined>): string {
  const out = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== '') out.append(name, String(one))
    }
  }
  const text = out.toString()
  return text && `?${text}`
}

export type Place = { connection: string; sandbox: string }
export const sandboxPath = (at: Place) => `/connections/${encodeURIComponent(at.connection)}/sandboxes/${encodeURIComponent(at.sandbox)}`
export const operationPath = (at: Place, id: string) => `${sandboxPath(at)}/operations/${encodeURIComponent(id)}`
