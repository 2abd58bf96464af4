// What comes from a sandbox is text, and never moves, hides or turns around
// what stands beside it: such characters are shown as marks.
const hostile = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g

function mark(found: string): string {
  const code = found.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  if (code === 0x7f) return '\u2421'
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`
}

export const visible = (text: string) => text.replace(hostile, mark)

// line is text on one line.
export const line = (text: string) => visible(text.replace(/\r\n|\r|\n/g, ' ⏎ ').replace(/\t/g, ' '))
