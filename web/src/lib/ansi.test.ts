import { expect, test } from 'vitest'
import { lines, spans } from '@/lib/ansi'

test.each([
  ['plain', 'a\nb', ['a\nb']],
  ['colours', '\u001b[31mred\u001b[0m no', ['red', ' no']],
  ['a title and the clipboard', '\u001b]0;title\u0007a\u001b]52;c;aGk=\u0007b', ['a', 'b']],
  ['a link', '\u001b]8;;javascript:alert(1)\u001b\\here\u001b]8;;\u001b\\', ['here']],
  ['moves and questions', 'a\u001b[2J\u001b[H\u001b[6nb', ['a', 'b']],
  ['progress', '10%\r50%\r100%\ndone', ['100%\ndone']],
  ['windows', 'a\r\nb', ['a\nb']],
  ['backspace', 'ab\bc', ['ac']],
  ['bidi', 'a\u202eb', ['a⟨U+202E⟩b']],
  ['an escape cut off', 'a\u001b[3', ['a', '3']],
])('%s', (_, given, want) => {
  expect(spans(given).map((one) => one.text)).toEqual(want)
})

test.each([
  ['31', 'var(--t-red)'], ['91', 'var(--t-red)'], ['38;5;196', 'rgb(255 0 0)'], ['38;2;1;2;3', 'rgb(1 2 3)'], ['38:5:232', 'rgb(8 8 8)'], ['31;39', undefined], ['48;5;31', undefined], ['38', undefined],
])('colour %s', (code, want) => {
  expect(spans(`\u001b[${code}mx`)[0]?.color).toBe(want)
})

test('a colour goes on over line breaks', () => {
  expect(lines('\u001b[32ma\nb\u001b[0m\n').map((line) => line.map((one) => one.color))).toEqual([['var(--t-green)'], ['var(--t-green)']])
})
