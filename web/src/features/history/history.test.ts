import { expect, test } from 'vitest'
import { cell } from '@/features/history/export'
import { asked, picks, readSearch, readTyped } from '@/features/history/filter'
import { type Row, grouped, itemsOf, merge } from '@/features/history/rows'
import { totals } from '@/features/history/summary'

const row = (id: string, change: Partial<Row['op']> = {}): Row => ({
  at: { connection: 'local', sandbox: 'box' }, snippets: [],
  op: { seq: 1, id, type: 'command.execute', status: 'succeeded', source: 'sdk', actor: { type: 'agent', id: 'a', run_id: 'r' }, started_at: '2026-01-01T10:00:00Z', duration_ms: 1, ...change },
})

test.each([['=1+1', `'=1+1`], ['@x', `'@x`], ['-x', `'-x`], ['+x', `'+x`], ['a,b', '"a,b"'], ['a"b', '"a""b"'], [-5, '-5'], [undefined, '']])('cell %s', (given, want) => {
  expect(cell(given)).toBe(want)
})

test('what is typed becomes filters', () => {
  expect(readTyped('status:failed path:"a b" needle type:file')).toEqual({ status: 'failed', path: 'a b', type: 'file', q: 'needle' })
  expect(readTyped('see http://x')).toEqual({ q: 'see http://x' })
})

test('an address holds nothing else', () => {
  expect(readSearch({ q: 42, group: 'nonsense', order: 'newest', live: false, evil: 'x' })).toEqual({ q: '42', live: false })
  expect(asked({ status: 'failed', exit: 'x', sandbox: 'local/box' })).toBe('?status=failed&status=timeout&status=unknown&status=denied&connection=local&sandbox=box')
})

test('the server is asked where only it knows', () => {
  expect(picks({}, row('1'))).toBe(true)
  expect(picks({ actor: 'b' }, row('1'))).toBe(false)
  expect(picks({ q: 'x' }, row('1'))).toBe(undefined)
})

test('what comes replaces what is known, and else stands at the head', () => {
  const data = { pages: [{ rows: [row('2'), row('1')], incomplete: false }], pageParams: [''] }
  const next = merge(data, [row('3', { started_at: '2026-01-01T11:00:00Z' }), row('1', { status: 'failed' })])
  expect(next.pages[0]?.rows.map((one) => [one.op.id, one.op.status])).toEqual([['3', 'succeeded'], ['2', 'succeeded'], ['1', 'failed']])
})

test('runs are grouped, long ones folded', () => {
  const rows = [...Array.from({ length: 30 }, (_, i) => row(String(i))), row('x', { actor: { type: 'agent', id: 'b' }, status: 'failed' })]
  expect(grouped(rows, 'run').map((one) => [one.rows.length, one.failed])).toEqual([[30, 0], [1, 1]])
  expect(itemsOf(rows, 'run', new Set(), new Set()).map((one) => one.kind)).toEqual(['group', ...Array.from({ length: 12 }, () => 'row'), 'more', 'group', 'row'])
})

test('what the server counts is told at the group in the list', () => {
  const counted = { operations: 150, failed: 3, from: '', to: '' }
  const summary = { operations: 150, failed: 3, bins: [], more: false, groups: [{ connection: 'local', sandbox: 'box', actor: { type: 'agent', id: 'a', run_id: 'r' }, ...counted }, { connection: 'local', sandbox: 'box', actor: { type: 'user', id: 'u' }, source: 'console', ...counted }] }
  const byRun = totals(summary, 'run')
  expect(grouped([row('1'), row('2', { source: 'console', actor: { type: 'user', id: 'u' } })], 'run').map((group) => byRun.get(group.key)?.operations)).toEqual([150, 150])
})
