// The browser reads many encodings and writes only UTF-8: what it reads is
// turned around, once for each encoding that is needed.
import { Unwritable } from '@/features/files/text'

// What the status bar offers, with the name that people know.
export const encodings: Record<string, string> = {
  'utf-8': 'UTF-8', 'utf-16le': 'UTF-16 LE', 'utf-16be': 'UTF-16 BE', gb18030: 'GB 18030', big5: 'Big5', shift_jis: 'Shift JIS', 'euc-jp': 'EUC-JP', 'euc-kr': 'EUC-KR',
  'windows-1252': 'Windows 1252', 'windows-1251': 'Windows 1251', 'iso-8859-2': 'ISO 8859-2', 'iso-8859-15': 'ISO 8859-15', 'koi8-r': 'KOI8-R',
}

type Encoder = (text: string) => Uint8Array

const tables = new Map<string, Map<string, number[]>>()

// table knows the bytes of each letter that one, two or, in GB 18030, four
// bytes make.
function table(encoding: string): Map<string, number[]> {
  const known = tables.get(encoding)
  if (known) return known
  const made = new Map<string, number[]>()
  const decoder = new TextDecoder(encoding, { fatal: true })
  const learn = (bytes: number[]) => {
    try {
      const letter = decoder.decode(new Uint8Array(bytes))
      const old = made.get(letter)
      if (letter && [...letter].length === 1 && (!old || old.length > bytes.length)) made.set(letter, bytes)
    } catch { /* these bytes are no letter */ }
  }
  for (let a = 0; a < 256; a++) if (encoding !== 'gb18030' || a < 0x80) learn([a]) // it reads 0x80 as €, and writes two bytes
  if (/^(gb18030|big5|shift_jis|euc-)/.test(encoding)) {
    for (let a = 0x81; a < 0xff; a++) for (let b = 0x40; b < 0xff; b++) learn([a, b])
  }
  tables.set(encoding, made)
  return made
}

// four finds the four bytes of a letter in GB 18030, which lie in order.
function four(letter: string): number[] | undefined {
  const decoder = new TextDecoder('gb18030', { fatal: true })
  const at = (i: number) => [0x81 + Math.floor(i / 12600), 0x30 + Math.floor(i / 1260) % 10, 0x81 + Math.floor(i / 10) % 126, 0x30 + (i % 10)]
  const want = letter.codePointAt(0) ?? 0
  if (want >= 0x10000) return at(want - 0x10000 + 189000)
  let low = 0
  let high = 39419
  while (low <= high) {
    const middle = (low + high) >> 1
    const read = decoder.decode(new Uint8Array(at(middle))).codePointAt(0) ?? 0
    const found = read === 0xe7c7 ? 0x1e3f : read // the one place that is out of order
    if (found === want) return at(middle)
    if (found < want) low = middle + 1
    else high = middle - 1
  }
  return undefined
}

function utf16(little: boolean): Encoder {
  return (text) => {
    const out = new DataView(new ArrayBuffer(text.length * 2))
    for (let i = 0; i < text.length; i++) out.setUint16(i * 2, text.charCodeAt(i), little)
    return new Uint8Array(out.buffer)
  }
}

export function encoderOf(encoding: string): Encoder {
  if (encoding === 'utf-8') return (text) => new TextEncoder().encode(text)
  if (encoding === 'utf-16le' || encoding === 'utf-16be') return utf16(encoding === 'utf-16le')
  return (text) => {
    const known = table(encoding)
    const out: number[] = []
    for (const letter of text) {
      let bytes = known.get(letter)
      if (!bytes && encoding === 'gb18030') {
        bytes = four(letter)
        if (bytes) known.set(letter, bytes)
      }
      if (!bytes) throw new Unwritable(letter)
      for (const one of bytes) out.push(one)
    }
    return Uint8Array.from(out)
  }
}
