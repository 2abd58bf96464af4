import { describe, expect, test } from 'vitest'
import { encodings } from '@/features/files/encodings'
import { Ends, Unwritable, decode, encode, guess, isBinary } from '@/features/files/text'

const bytes = (text: string) => Uint8Array.from(text, (one) => one.charCodeAt(0))
const whole = (given: Uint8Array, encoding?: string) => {
  const found = decode(given, encoding)
  if (!found) throw new Error('no text')
  return { ...found, back: encode(found.text, found.form, found.ends) }
}

describe('what is read is written back', () => {
  for (const [name, given] of [
    ['nothing', ''], ['no last line end', 'a\nb'], ['CRLF', 'a\r\nb\r\nc'], ['CR', 'a\rb\r'], ['mixed', 'a\r\nb\nc\r\r\nd\n\r'], ['BOM', '\xef\xbb\xbfa\r\n'], ['BOM twice', '\xef\xbb\xbf\xef\xbb\xbfa'], ['BOM alone', '\xef\xbb\xbf'],
    ['UTF-16', '\xff\xfea\0\r\0\n\0'], ['UTF-16 BE', '\xfe\xff\0a\0\n'], ['letters of one byte', 'caf\xe9 \x80\x81\x9f\xff\n'], ['separators that are no line ends', 'a\xe2\x80\xa8b\xe2\x80\xa9c\x0b\x0c\x85'], ['a zero beyond what is looked at', `${'a'.repeat(70_000)}\0`],
  ] as const) {
    test(name, () => {
      const given8 = bytes(given)
      expect([...whole(given8).back]).toEqual([...given8])
    })
  }
  test('any bytes', () => {
    let seed = 11
    const next = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n
    for (let i = 0; i < 200; i++) {
      const given = Uint8Array.from({ length: next(60) }, () => [10, 13, 65, 0xe9, 0xb0, 0xa1, 0xff, 0xfe, next(255) + 1][next(9)] ?? 65)
      const found = decode(given)
      if (!found) continue
      expect([...encode(found.text, found.form, found.ends)]).toEqual([...given])
    }
  })
})

test('every encoding writes what it reads', () => {
  const samples: Record<string, string> = { gb18030: '中文 ①€ 𠮷 ḿ', big5: '中文測試', shift_jis: '日本語テスト', 'euc-jp': '日本語', 'euc-kr': '한국어', 'windows-1251': 'Привет', 'koi8-r': 'Привет', 'windows-1252': 'café' /* Node.js reads its 0x80 wrongly */, 'iso-8859-2': 'łódź', 'iso-8859-15': 'café €', 'utf-8': '中文 🙂', 'utf-16le': '中 🙂', 'utf-16be': '中 🙂' }
  for (const name of Object.keys(encodings)) {
    const text = samples[name] ?? ''
    const made = encode(text, { encoding: name, bom: false, breaks: '\n' })
    expect([name, new TextDecoder(name).decode(made)]).toEqual([name, text])
  }
  expect(text18030()).toEqual([])
})

// text18030 writes every letter of the plane that browsers read, by its four bytes too.
function text18030(): string[] {
  const wrong: string[] = []
  for (let code = 0x80; code < 0x10000; code += 7) {
    if ((code >= 0xd800 && code < 0xf900)) continue // halves of letters, and letters for private use
    const letter = String.fromCodePoint(code)
    try {
      if (new TextDecoder('gb18030').decode(encode(letter, { encoding: 'gb18030', bom: false, breaks: '\n' })) !== letter) wrong.push(code.toString(16))
    } catch {
      wrong.push(`none ${code.toString(16)}`)
    }
  }
  return wrong
}

test('a letter that an encoding lacks is refused, and told', () => {
  expect(() => encode('a中', { encoding: 'windows-1252', bom: false, breaks: '\n' })).toThrow(Unwritable)
})

test('FB-017 a letter that is cut makes no text binary', () => {
  const euros = new TextEncoder().encode('€€€\n')
  for (const n of [4092, 8188, 8189, 8190, 8191, 8192, 8193, 32766, 65534, 65535, 65536]) {
    const given = new Uint8Array(n + euros.length)
    given.fill(0x61, 0, n)
    given.set(euros, n)
    expect(isBinary(given)).toBe(false)
    expect(whole(given).text.endsWith('€€€\n')).toBe(true)
    for (let cut = 1; cut < 9; cut++) expect([cut, guess(given.subarray(0, n + cut), true)]).toEqual([cut, 'utf-8'])
  }
})

test('encodings are guessed', () => {
  expect(guess(bytes('\xd6\xd0\xce\xc4\xc4\xda\xc8\xdd'))).toBe('gb18030')
  expect(guess(bytes('caf\xe9 na\xefve'))).toBe('windows-1252')
  expect(guess(new TextEncoder().encode('中文'))).toBe('utf-8')
  expect(isBinary(bytes('a\0b'))).toBe(true)
  expect(isBinary(bytes('\xff\xfea\0'))).toBe(false)
})

test('line ends follow what is edited, and come back when it is undone', () => {
  const edit = (from: number, until: number, text: string) => [{ range: { startLineNumber: from, endLineNumber: until }, text }]
  const ends = new Ends(['\r\n', '\n', '\r'], 1)
  ends.edited(edit(1, 1, 'x\ny'), 2) // a line more in the first
  expect(ends.list).toEqual(['\n', '\r\n', '\n', '\r'])
  ends.edited(edit(2, 3, ''), 3) // the second and third are joined
  expect(ends.list).toEqual(['\n', '\n', '\r'])
  ends.edited(edit(1, 1, ''), 1) // undone, twice
  expect(ends.list).toEqual(['\r\n', '\n', '\r'])
})
