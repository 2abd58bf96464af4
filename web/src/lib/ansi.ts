// Output with the colours of a terminal, and nothing else of one: sequences
// that move, title, copy or ask do nothing, links are text.
import { visible } from '@/lib/safe'

export type Span = { text: string; color?: string; bold?: boolean; dim?: boolean; italic?: boolean; underline?: boolean }

const names = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const
const steps = [0, 95, 135, 175, 215, 255] as const

function palette(n: number): string | undefined {
  if (n < 16) return `var(--t-${names[n % 8]})`
  if (n > 231) return `rgb(${[0, 0, 0].map(() => 8 + (n - 232) * 10).join(' ')})`
  const at = n - 16
  return `rgb(${[Math.floor(at / 36), Math.floor(at / 6) % 6, at % 6].map((i) => steps[i] ?? 0).join(' ')})`
}

function extended(codes: number[], at: number): [string | undefined, number] {
  if (codes[at + 1] === 5) return [palette((codes[at + 2] ?? 0) & 255), 2]
  if (codes[at + 1] === 2) return [`rgb(${[2, 3, 4].map((i) => (codes[at + i] ?? 0) & 255).join(' ')})`, 4]
  return [undefined, 0]
}

function style(now: Omit<Span, 'text'>, given: string): Omit<Span, 'text'> {
  const codes = given.split(/[;:]/).map(Number)
  let next = { ...now }
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0
    if (code === 0) next = {}
    else if (code === 1) next.bold = true
    else if (code === 2) next.dim = true
    else if (code === 3) next.italic = true
    else if (code === 4) next.underline = true
    else if (code === 22) next.bold = next.dim = undefined
    else if (code === 23) next.italic = undefined
    else if (code === 24) next.underline = undefined
    else if (code >= 30 && code < 38) next.color = palette(code - 30)
    else if (code >= 90 && code < 98) next = { ...next, color: palette(code - 90), bold: true }
    else if (code === 39) next.color = undefined
    else if (code === 38 || code === 48) {
      const [color, used] = extended(codes, i)
      if (code === 38) next.color = color
      i += used
    }
  }
  return next
}

const sequence = /\u001b\[([0-9;:<=>?]*)[ -/]*([@-~])|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]/g

// returned leaves what a terminal would show after carriage returns.
function returned(text: string): string {
  const lines = text.replace(/\r+\n/g, '\n').split('\n')
  return lines.map((one) => (one.includes('\r') ? overwrite(one) : one)).join('\n')
}

// Colours of what is overwritten stay, as they may hold for what follows.
function overwrite(text: string): string {
  const parts = text.split('\r')
  const last = parts.findLast((part) => part !== '') ?? ''
  return parts.slice(0, parts.lastIndexOf(last)).flatMap((part) => part.match(sequence) ?? []).join('') + last
}

const erased = (text: string) => text.replace(/[^\b\n]\u0008/g, '')

// spans cuts output into pieces of one style.
export function spans(raw: string): Span[] {
  const text = erased(returned(raw))
  const out: Span[] = []
  let now: Omit<Span, 'text'> = {}
  let from = 0
  const push = (to: number) => {
    if (to > from) out.push({ ...now, text: visible(text.slice(from, to)) })
  }
  for (const found of text.matchAll(sequence)) {
    push(found.index)
    from = found.index + found[0].length
    if (found[2] === 'm' && !/[<=>?]/.test(found[1] ?? '')) now = style(now, found[1] ?? '')
  }
  push(text.length)
  return out
}

// lines cuts spans at line breaks.
export function lines(raw: string): Span[][] {
  const out: Span[][] = [[]]
  for (const span of spans(raw)) {
    span.text.split('\n').forEach((text, i) => {
      if (i > 0) out.push([])
      if (text) out.at(-1)?.push({ ...span, text })
    })
  }
  if (out.at(-1)?.length === 0) out.pop()
  return out
}

export const plainText = (raw: string) => spans(raw).map((span) => span.text).join('')
