import { expect, test } from 'vitest'
import { Printed } from '@/features/commands/printed'
import type { Stream } from '@/lib/queries'

const piece = (stream: Stream, text: string | Uint8Array, skipped = 0) => ({ stream, data: typeof text === 'string' ? new TextEncoder().encode(text) : text, time: '', skipped })
const shown = (printed: Printed) => printed.lines.map((line) => `${line.stream === 'stderr' ? '!' : ''}${line.text}`)

test('both streams stand in the order in which they came', () => {
  const printed = new Printed()
  for (const [stream, text] of [['stdout', 'a\nhal'], ['stdout', 'f\n'], ['stderr', 'oops'], ['stdout', 'b\n'], ['stderr', ' again\n'], ['stdout', '\nend']] as const) printed.add(piece(stream, text))
  expect(shown(printed)).toEqual(['a', 'half', '!oops', 'b', '! again', '', 'end'])
  expect(printed.bytes).toEqual({ stdout: 13, stderr: 11 })
})

test('a character may come in pieces', () => {
  const printed = new Printed()
  const bytes = new TextEncoder().encode('研')
  for (const byte of bytes) printed.add(piece('stdout', Uint8Array.of(byte)))
  expect(shown(printed)).toEqual(['研'])
})

test('the newest lines stay', () => {
  const printed = new Printed()
  for (let i = 0; i < 30; i++) printed.add(piece('stdout', 'x\n'.repeat(1000)))
  expect([printed.lines.length, printed.dropped]).toEqual([10_000, 20_000])
  for (let i = 0; i < 200; i++) printed.add(piece('stdout', `${'y'.repeat(64 << 10)}\n`))
  expect(printed.lines.length).toBeLessThan(130)
  expect(new Set(printed.lines.map((line) => line.no)).size).toBe(printed.lines.length)
})
