import { type ClassValue, clsx } from 'clsx'
import { extendTailwindMerge } from 'tailwind-merge'

const merge = extendTailwindMerge({ extend: { theme: { text: ['xs', 'sm', 'base', 'md', 'lg', 'xl'] } } })

// cn joins classes; the last of two that contradict each other holds.
export const cn = (...parts: ClassValue[]) => merge(clsx(parts))
