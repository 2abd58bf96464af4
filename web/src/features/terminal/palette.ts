// The colours of a terminal, as the page has them now.
import type { ITheme } from '@xterm/xterm'

export function palette(): ITheme {
  const style = getComputedStyle(document.documentElement)
  const value = (name: string) => style.getPropertyValue(`--${name}`).trim()
  const [black, red, green, yellow, blue, magenta, cyan, white] = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'].map((name) => value(`t-${name}`))
  return {
    background: value('term'), foreground: value('term-foreground'), cursor: value('term-foreground'), cursorAccent: value('term'), selectionBackground: value('brand-soft'),
    black, red, green, yellow, blue, magenta, cyan, white,
    brightBlack: black, brightRed: red, brightGreen: green, brightYellow: yellow, brightBlue: blue, brightMagenta: magenta, brightCyan: cyan, brightWhite: white,
  }
}
