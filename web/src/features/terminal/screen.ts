// A terminal as a browser has it: xterm.js, held to what a stranger may show.
import { FitAddon } from '@xterm/addon-fit'
import { SearchAddon } from '@xterm/addon-search'
import { WebLinksAddon } from '@xterm/addon-web-links'
import { Terminal } from '@xterm/xterm'
import { palette } from '@/features/terminal/palette'

export type Screen = { terminal: Terminal; search: SearchAddon; fit: () => void; dispose: () => void }

type Options = {
  onType: (data: Uint8Array) => void
  onSize: (columns: number, rows: number) => void
  onLink: (url: string) => void
  // mute tells that what programs ask of a terminal is not answered from here.
  mute: () => boolean
}

const plain = (url: string) => /^https?:\/\//i.test(url)

export function newScreen(parent: HTMLElement, { onType, onSize, onLink, mute }: Options): Screen {
  const style = getComputedStyle(parent)
  const terminal = new Terminal({
    fontFamily: style.fontFamily, fontSize: 13, lineHeight: 1.2, scrollback: 10_000, minimumContrastRatio: 4.5, theme: palette(), cursorBlink: false, screenReaderMode: false,
    // Links that a program makes (OSC 8) say what they lead to before they are followed.
    linkHandler: { activate: (_, url) => plain(url) && onLink(url), allowNonHttpProtocols: false },
  })
  const fit = new FitAddon()
  const search = new SearchAddon()
  terminal.loadAddon(fit)
  terminal.loadAddon(search)
  terminal.loadAddon(new WebLinksAddon((_, url) => plain(url) && onLink(url)))
  // What a program asks is answered once, by who types, and not when it is shown again.
  for (const final of ['c', 'n']) for (const prefix of ['', '?', '>', '=']) terminal.parser.registerCsiHandler({ final, ...(prefix && { prefix }) }, mute)
  terminal.parser.registerCsiHandler({ intermediates: '$', final: 'p' }, mute)
  terminal.parser.registerCsiHandler({ prefix: '?', intermediates: '$', final: 'p' }, mute)
  terminal.parser.registerDcsHandler({ intermediates: '$', final: 'q' }, mute)
  for (const code of [4, 10, 11, 12]) terminal.parser.registerOscHandler(code, (data) => data.includes('?') && mute())
  // No title, no clipboard, no windows.
  for (const code of [0, 1, 2, 52]) terminal.parser.registerOscHandler(code, () => true)
  terminal.parser.registerCsiHandler({ final: 't' }, () => true)
  const encoder = new TextEncoder()
  terminal.onData((text) => onType(encoder.encode(text)))
  terminal.onBinary((text) => onType(Uint8Array.from(text, (one) => one.charCodeAt(0))))
  terminal.onResize(({ cols, rows }) => onSize(cols, rows))
  terminal.open(parent)
  const fitted = () => parent.clientWidth > 0 && parent.clientHeight > 0 && fit.fit()
  fitted()
  onSize(terminal.cols, terminal.rows)
  const resized = new ResizeObserver(fitted)
  resized.observe(parent)
  const themed = new MutationObserver(() => { terminal.options.theme = palette() })
  themed.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  const dispose = () => {
    resized.disconnect()
    themed.disconnect()
    terminal.dispose()
  }
  return { terminal, search, fit: fitted, dispose }
}
