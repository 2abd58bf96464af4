import { useQuery } from '@tanstack/react-query'
import { meQuery } from '@/lib/queries'

const ranks = ['viewer', 'operator', 'admin'] as const
export type Role = (typeof ranks)[number]

// useMay tells whether who looks has a role. Until that is known nothing is refused here.
export function useMay(role: Role): boolean {
  const { data } = useQuery(meQuery)
  const mine = ranks.findIndex((one) => one === data?.user.role)
  return mine < 0 || mine >= ranks.indexOf(role)
}
