// What a command has printed, as lines of both streams in the order in which
// they came. The newest stay; the history has all.
import type { Piece } from '@/features/commands/follow'
import type { Stream } from '@/lib/queries'

export type Line = { no: number; stream: Stream; text: string; time: string }

const maxLines = 10_000
const maxText = 8 << 20 // characters
const maxLine = 64 << 10

export class Printed {
  lines: Line[] = []
  dropped = 0 // lines that are no longer here
  skipped = 0 // bytes that nobody keeps
  readonly bytes: Record<Stream, number> = { stdout: 0, stderr: 0 }
  private text = 0
  private count = 0
  private open: Partial<Record<Stream, Line>> = {} // lines that have no end yet
  private readonly decoders: Record<Stream, TextDecoder> = { stdout: new TextDecoder(), stderr: new TextDecoder() }

  add({ stream, data, time, skipped }: Piece) {
    this.skipped += skipped
    this.bytes[stream] += data.length
    const parts = this.decoders[stream].decode(data, { stream: true }).split('\n')
    parts.forEach((part, i) => {
      if (part || i < parts.length - 1) this.write(stream, part, time)
      if (i < parts.length - 1) this.open[stream] = undefined
    })
    this.trim()
  }

  // write goes on with the line of a stream, unless the other has printed
  // since, or it is as long as a line may be.
  private write(stream: Stream, part: string, time: string) {
    const old = this.open[stream]
    if (old && old === this.lines.at(-1) && old.text.length + part.length <= maxLine) {
      this.lines[this.lines.length - 1] = this.open[stream] = { ...old, text: old.text + part }
    } else {
      const line = { no: this.count++, stream, text: part.slice(0, maxLine), time }
      this.open[stream] = line
      this.lines.push(line)
    }
    this.text += Math.min(part.length, maxLine)
  }

  private trim() {
    let n = 0
    let text = this.text
    while (this.lines.length - n > maxLines || (text > maxText && this.lines.length - n > 1)) text -= this.lines[n++]?.text.length ?? 0
    if (n === 0) return
    this.lines = this.lines.slice(n)
    this.text = text
    this.dropped += n
  }
}
