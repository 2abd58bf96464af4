// What the address says of the list of sandboxes.
import type { Sandbox } from '@/lib/api'
import { isGone, nameOf } from '@/lib/box'

export const filters = ['running', 'paused', 'ended'] as const
export type StateFilter = (typeof filters)[number]
export const sorts = ['name', 'state', 'created', 'expires', 'image'] as const
export type Sort = (typeof sorts)[number]

export type SandboxSearch = { q?: string; state?: StateFilter; conn?: string; sort?: Sort; desc?: true; flat?: true; create?: true }

export function readSandboxSearch(given: Record<string, unknown>): SandboxSearch {
  const text = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? String(value) || undefined : undefined)
  return {
    q: text(given.q), conn: text(given.conn), state: filters.find((one) => one === given.state), sort: sorts.find((one) => one === given.sort),
    desc: given.desc === true || undefined, flat: given.flat === true || undefined, create: given.create === true || undefined,
  }
}

export function inState(box: Sandbox, state: StateFilter | undefined): boolean {
  if (state === 'ended') return isGone(box) || box.state === 'Failed'
  if (state === 'paused') return !isGone(box) && box.state === 'Paused'
  return state === undefined || (!isGone(box) && box.state === 'Running')
}

export function found(box: Sandbox, q: string | undefined): boolean {
  const text = (q ?? '').trim().toLowerCase()
  const fields = [nameOf(box), box.id, box.image ?? '', ...Object.entries(box.metadata ?? {}).map(([key, value]) => `${key}=${value}`)]
  return text === '' || fields.some((one) => one.toLowerCase().includes(text))
}

const names = new Intl.Collator(undefined, { numeric: true })

const orders: Record<Sort, (a: Sandbox, b: Sandbox) => number> = {
  name: (a, b) => names.compare(nameOf(a), nameOf(b)), state: (a, b) => names.compare(a.state, b.state), image: (a, b) => names.compare(a.image ?? '', b.image ?? ''),
  created: (a, b) => Date.parse(b.created_at) - Date.parse(a.created_at), expires: (a, b) => Date.parse(a.expires_at ?? '9999') - Date.parse(b.expires_at ?? '9999'),
}

// ordered sorts; without a wish the living stand before the ended, the newest first.
export function ordered(list: Sandbox[], { sort, desc }: SandboxSearch): Sandbox[] {
  const order = orders[sort ?? 'created']
  return list.toSorted((a, b) => (sort ? 0 : Number(isGone(a)) - Number(isGone(b))) || order(a, b) * (desc ? -1 : 1))
}

// repeated are the names that more than one sandbox has.
export function repeated(list: Sandbox[]): Set<string> {
  const seen = new Set<string>()
  const twice = new Set<string>()
  for (const box of list) (seen.has(nameOf(box)) ? twice : seen).add(nameOf(box))
  return twice
}
