// Text as it lies in a file: its encoding, its mark at the start and its line
// ends. What is read is written back byte for byte, but for what was edited.
import { encoderOf } from '@/features/files/encodings'

export type Form = {
  encoding: string
  bom: boolean
  // Where line ends are mixed, those of each line stand in the model's lines.
  breaks: '\n' | '\r\n' | '\r' | 'mixed'
}

export type Text = { text: string; form: Form; ends: string[] }

const boms: { encoding: string; bytes: number[] }[] = [{ encoding: 'utf-8', bytes: [0xef, 0xbb, 0xbf] }, { encoding: 'utf-16le', bytes: [0xff, 0xfe] }, { encoding: 'utf-16be', bytes: [0xfe, 0xff] }]

const bomOf = (bytes: Uint8Array) => boms.find((one) => one.bytes.every((byte, i) => bytes[i] === byte))

const sniffed = 64 * 1024

// isBinary tells by NUL bytes, as git does, whether bytes are no text. A piece
// of a file may begin and end within a letter.
export const isBinary = (bytes: Uint8Array) => !bomOf(bytes) && bytes.subarray(0, sniffed).includes(0)

function tryDecode(bytes: Uint8Array, encoding: string, cut: boolean): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes, { stream: cut })
  } catch {
    return undefined
  }
}

// guess finds the encoding of text without a mark.
export function guess(bytes: Uint8Array, cut = false): string {
  if (tryDecode(bytes, 'utf-8', cut) !== undefined) return 'utf-8'
  const chinese = tryDecode(bytes, 'gb18030', cut)
  if (chinese !== undefined && likelyChinese(bytes)) return 'gb18030'
  return 'windows-1252' // it knows every byte, so nothing is lost
}

// likelyChinese: most letters beyond ASCII are pairs of GB 2312.
function likelyChinese(bytes: Uint8Array): boolean {
  let pairs = 0
  let others = 0
  for (let i = 0; i < bytes.length; i++) {
    const one = bytes[i] ?? 0
    if (one < 0x80) continue
    const next = bytes[i + 1] ?? 0
    if (one >= 0xa1 && one <= 0xf7 && next >= 0xa1) {
      pairs++
      i++
    } else others++
  }
  return pairs > others * 4
}

// decode reads text that can be written back byte for byte. In cut pieces a
// letter may be cut at the end.
export function decode(bytes: Uint8Array, encoding?: string, cut = false): Text | undefined {
  const bom = bomOf(bytes)
  const names = encoding ? [encoding] : [bom?.encoding ?? guess(bytes, cut), ...(isBinary(bytes) ? [] : ['windows-1252'])]
  for (const name of names) {
    const found = decodeAs(bytes, name, bom?.encoding === name ? bom.bytes.length : 0, cut)
    if (found && (cut || name === 'utf-8' || same(encode(found.text, found.form, found.ends), bytes))) return found
  }
  return undefined
}

function decodeAs(bytes: Uint8Array, encoding: string, skipped: number, cut: boolean): Text | undefined {
  const whole = tryDecode(bytes.subarray(skipped), encoding, cut)
  if (whole === undefined) return undefined
  const ends = whole.match(/\r\n|\r|\n/g) ?? []
  const [first = '\n'] = ends
  const breaks = ends.every((one) => one === first) ? (first === '\r\n' || first === '\r' ? first : '\n') : 'mixed'
  return { text: breaks === '\n' ? whole : whole.replace(/\r\n|\r/g, '\n'), form: { encoding, bom: skipped > 0, breaks }, ends: breaks === 'mixed' ? [...ends] : [] }
}

const same = (a: Uint8Array, b: Uint8Array) => a.length === b.length && a.every((one, i) => one === b[i])

// Unwritable is a letter that an encoding does not have.
export class Unwritable extends Error {
  readonly letter: string
  constructor(letter: string) {
    super(letter)
    this.letter = letter
  }
}

// encode writes text whose lines end with \n, each with the end it had.
export function encode(text: string, form: Form, ends: string[] = []): Uint8Array {
  let i = 0
  const whole = form.breaks === '\n' ? text : text.replace(/\n/g, () => (form.breaks === 'mixed' ? (ends[i++] ?? '\n') : form.breaks))
  const body = encoderOf(form.encoding)(whole)
  const bom = form.bom ? boms.find((one) => one.encoding === form.encoding)?.bytes : undefined
  if (!bom) return body
  const out = new Uint8Array(bom.length + body.length)
  out.set(bom)
  out.set(body, bom.length)
  return out
}

type Change = { range: { startLineNumber: number; endLineNumber: number }; text: string }

const keptVersions = 1000

// Ends follow the line ends of a text that mixes them while it is edited.
export class Ends {
  list: string[]
  readonly first: string[]
  private readonly usual: string
  private readonly kept: Map<number, string[]>

  constructor(list: string[], version: number, before?: Ends) {
    this.list = before?.list ?? list
    this.first = list
    this.usual = list.filter((one) => one === '\r\n').length * 2 > list.length ? '\r\n' : '\n'
    this.kept = before?.kept ?? new Map([[version, list]])
  }

  // at are the ends that a version of the text had.
  at = (version: number) => this.kept.get(version) ?? this.list

  // edited is told of changes, the last in the text first, and of the version
  // that they lead to: undoing leads to one that was there before.
  edited(changes: readonly Change[], version: number) {
    const list = this.kept.get(version) ?? this.spliced(changes)
    this.list = list
    this.kept.set(version, list)
    for (const old of this.kept.keys()) {
      if (this.kept.size <= keptVersions) break
      this.kept.delete(old)
    }
  }

  private spliced(changes: readonly Change[]): string[] {
    const list = [...this.list]
    for (const { range, text } of changes) {
      const added = text.split(/\r\n|\r|\n/).length - 1
      list.splice(range.startLineNumber - 1, range.endLineNumber - range.startLineNumber, ...Array.from({ length: added }, () => this.usual))
    }
    return list
  }
}
