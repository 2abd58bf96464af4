// Dark or light: as chosen, else as the system.
import { useSyncExternalStore } from 'react'
import { kept } from '@/lib/kept'

export type Theme = 'light' | 'dark' | 'system'

const chosen = kept<Theme>('glassbox.theme', (text) => (text === 'light' || text === 'dark' ? text : undefined))
const dark = matchMedia('(prefers-color-scheme: dark)')

function apply() {
  const now = chosen.get() ?? 'system'
  document.documentElement.dataset.theme = now === 'system' ? (dark.matches ? 'dark' : 'light') : now
}

dark.addEventListener('change', apply)
chosen.subscribe(apply)
apply()

export const useTheme = (): Theme => useSyncExternalStore(chosen.subscribe, () => chosen.get() ?? 'system')

export function nextTheme() {
  const order: Theme[] = ['system', 'light', 'dark']
  chosen.set(order[(order.indexOf(chosen.get() ?? 'system') + 1) % order.length] ?? 'system')
}
