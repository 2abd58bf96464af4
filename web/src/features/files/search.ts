// What the address tells of the files that are looked at.
import { isName, type Name } from '@/features/files/names'

const views = ['text', 'preview', 'hex', 'side'] as const
export type View = (typeof views)[number]
export type FilesSearch = { path?: Name; at?: string; view?: View; history?: boolean }

export function readFilesSearch(given: Record<string, unknown>): FilesSearch {
  return {
    path: isName(given.path) ? given.path : undefined, at: typeof given.at === 'string' ? given.at : undefined, view: views.find((one) => one === given.view), history: given.history === true ? true : undefined,
  }
}
