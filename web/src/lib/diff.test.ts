import { expect, test } from 'vitest'
import { countDiff, readDiff, sideBySide } from '@/lib/diff'

const diff = '--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n+drei\n three\n\\ No newline at end of file\n'

test('lines have their numbers', () => {
  expect(readDiff(diff).map((one) => [one.kind, one.old, one.new, one.text])).toEqual([
    ['hunk', undefined, undefined, '@@ -1,3 +1,3 @@'], ['same', 1, 1, 'one'], ['del', 2, undefined, 'two'], ['add', undefined, 2, 'zwei'], ['add', undefined, 3, 'drei'], ['same', 3, 4, 'three'],
    ['note', undefined, undefined, '\\ No newline at end of file'],
  ])
  expect(countDiff(diff)).toEqual({ added: 2, removed: 1 })
})

test('what was removed stands beside what came', () => {
  expect(sideBySide(readDiff(diff)).map((pair) => [pair.left?.text, pair.right?.text]).slice(1, 4)).toEqual([['one', 'one'], ['two', 'zwei'], [undefined, 'drei']])
})

test('a line that looks like the name of a file is a line', () => {
  expect(countDiff('--- a\n+++ b\n@@ -1 +1 @@\n--- x\n+++ y\n')).toEqual({ added: 1, removed: 1 })
})
