// What the server counts of a history, of which the list has loaded a part.
import { queryOptions } from '@tanstack/react-query'
import type { components } from '@/gen/api'
import { type Grouping, type HistorySearch, asked, placeKey } from '@/features/history/filter'
import { groupKeyOf } from '@/features/history/rows'
import { type Place, read, sandboxPath } from '@/lib/api'

export type Summary = components['schemas']['Summary']
export type Total = { operations: number; failed: number }

export const bins = 480

// summaryQuery counts all that is picked. A text cannot be counted, and a server
// without a mirror counts nothing: then what is loaded speaks for itself.
export const summaryQuery = (scope: Place | undefined, search: HistorySearch, grouping: Grouping) => {
  const filter = asked({ ...search, q: undefined, order: undefined })
  const group = grouping === 'hour' || grouping === 'none' ? '' : `&group=${grouping}`
  return queryOptions({
    queryKey: ['summary', scope ? placeKey(scope) : 'all', filter, group], staleTime: 10_000, retry: false, enabled: !search.q,
    queryFn: ({ signal }) => read<Summary>(`${scope ? sandboxPath(scope) : ''}/summary${filter || '?'}${filter && '&'}bins=${bins}${group}`, signal),
  })
}

// totals are the counts of the groups, by their keys in the list.
export function totals(summary: Summary | undefined, grouping: Grouping): Map<string, Total> {
  return new Map((summary?.groups ?? []).map((one) => [groupKeyOf({ connection: one.connection ?? '', sandbox: one.sandbox ?? '' }, one.actor, one.source ?? '', grouping), one]))
}
