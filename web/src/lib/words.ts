// The catalogue that is chosen: by the person, else by the browser.
import { useSyncExternalStore } from 'react'
import { type Catalogue, en } from '@/catalogue/en'
import { zh } from '@/catalogue/zh'
import type { Lang } from '@/lib/format'
import { kept } from '@/lib/kept'

const chosen = kept<Lang>('glassbox.language', (text) => (text === 'zh' || text === 'en' ? text : undefined))

const lang = (): Lang => chosen.get() ?? (navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en')

export function setLang(to: Lang) {
  chosen.set(to)
  document.documentElement.lang = to
}

export function useLang(): Lang {
  return useSyncExternalStore(chosen.subscribe, lang)
}

export function useWords(): Catalogue {
  return useLang() === 'zh' ? zh : en
}

// label looks a word of the server up; what the catalogue lacks is shown as it is.
export function label(words: Record<string, unknown>, name: string): string {
  const word = Object.hasOwn(words, name) ? words[name] : undefined
  return typeof word === 'string' ? word : name
}

document.documentElement.lang = lang()
