import { expect, test } from 'vitest'
import { diffLines, merge } from '@/lib/lines'

const lines = (text: string) => text.split(' ')

// rebuild applies what differs, which gives the new text.
function rebuild(a: string[], b: string[]): string[] {
  const out: string[] = []
  let at = 0
  for (const one of diffLines(a, b)) {
    out.push(...a.slice(at, one.from), ...b.slice(one.to, one.end))
    at = one.until
  }
  return [...out, ...a.slice(at)]
}

test('what differs leads from one text to the other', () => {
  const words = ['a', 'b', 'c', 'd']
  let seed = 7
  const next = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n
  for (let i = 0; i < 300; i++) {
    const make = () => Array.from({ length: next(12) }, () => words[next(4)] ?? '')
    const [a, b] = [make(), make()]
    expect(rebuild(a, b)).toEqual(b)
  }
})

test('hunks are the least', () => {
  expect(diffLines(lines('a b c d'), lines('a x c d y'))).toEqual([{ from: 1, until: 2, to: 1, end: 2 }, { from: 4, until: 4, to: 4, end: 5 }])
  expect(diffLines(lines('a b'), lines('a b'))).toEqual([])
})

const told = (base: string, mine: string, theirs: string) => merge(lines(base), lines(mine), lines(theirs)).map((part) => (part.kind === 'conflict' ? `${part.mine.join(' ')}|${part.theirs.join(' ')}` : part.lines.join(' ')))

test('merge joins changes of different places', () => {
  expect(told('a b c d e', 'a B c d e', 'a b c d E')).toEqual(['a', 'B', 'c d', 'E'])
  expect(told('a b c', 'a b c x', 'y a b c')).toEqual(['y', 'a b c', 'x'])
  expect(told('a b c', 'a B c', 'a B c')).toEqual(['a', 'B', 'c'])
})

test('merge tells what both changed', () => {
  expect(told('a b c', 'a B c', 'a X c')).toEqual(['a', 'B|X', 'c'])
  expect(told('a b c', 'a c', 'a X c')).toEqual(['a', '|X', 'c'])
})

test('a merge of mine alone is mine, and of theirs alone theirs', () => {
  const words = ['a', 'b', 'c', 'd', 'e']
  let seed = 3
  const next = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n
  for (let i = 0; i < 300; i++) {
    const make = () => Array.from({ length: next(10) }, () => words[next(5)] ?? '')
    const [base, mine, theirs] = [make(), make(), make()]
    expect(merge(base, mine, base).flatMap((part) => (part.kind === 'conflict' ? ['?'] : part.lines))).toEqual(mine)
    expect(merge(base, base, theirs).flatMap((part) => (part.kind === 'conflict' ? ['?'] : part.lines))).toEqual(theirs)
    expect(merge(base, mine, mine).flatMap((part) => (part.kind === 'conflict' ? ['?'] : part.lines))).toEqual(mine)
  }
})
