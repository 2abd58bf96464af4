// A terminal that is looked at: a screen, and the way to what it shows.
import { type Exit, Link, type LinkState } from '@/features/terminal/link'
import { type Screen, newScreen } from '@/features/terminal/screen'
import type { Place, Problem } from '@/lib/api'

export type View = { state: LinkState; writer?: boolean; exit?: Exit; problem?: Problem; missing: number; ready: boolean }

type Events = { onLink: (url: string) => void; onFind: () => void }

export class Session {
  view: View = { state: 'connecting', missing: 0, ready: false }
  screen?: Screen
  private link?: Link
  private readonly listeners = new Set<() => void>()

  constructor(private readonly at: Place, private readonly id: string) {}

  subscribe = (changed: () => void) => {
    this.listeners.add(changed)
    return () => this.listeners.delete(changed)
  }

  look = () => this.view

  // mount shows the terminal in an element, until that is taken away.
  mount(parent: HTMLElement, { onLink, onFind }: Events): () => void {
    const before: (() => void)[] = [] // the screen tells its size before there is a way
    const tell = (run: () => void) => (this.link ? run() : before.push(run))
    const screen = newScreen(parent, {
      onType: (data) => tell(() => this.link?.type(data)), onSize: (columns, rows) => tell(() => this.link?.resize(columns, rows)), onLink,
      mute: () => Boolean(this.link?.replaying) || this.link?.writer === false,
    })
    screen.terminal.attachCustomKeyEventHandler((event) => ours(event, screen, onFind))
    this.screen = screen
    const link = new Link(this.at, this.id, {
      onData: (data, done) => screen.terminal.write(data, done), onMissing: (bytes) => this.set({ missing: this.view.missing + bytes }),
      onChange: () => {
        screen.terminal.options.disableStdin = link.state === 'ended' || link.state === 'refused' || link.writer === false
        this.set({ state: link.state, writer: link.writer, exit: link.exit, problem: link.problem })
      },
    })
    this.link = link
    for (const run of before) run()
    this.set({ ready: true })
    return () => {
      link.close()
      screen.dispose()
      this.link = this.screen = undefined
    }
  }

  take() {
    this.link?.take()
    this.screen?.terminal.focus()
  }

  private set(change: Partial<View>) {
    this.view = { ...this.view, ...change }
    for (const changed of this.listeners) changed()
  }
}

// ours takes the few keys that are not the program's.
function ours(event: KeyboardEvent, { terminal }: Screen, onFind: () => void): boolean {
  if (event.type !== 'keydown') return true
  if (event.key === 'F6') document.querySelector<HTMLElement>('[data-terminal-bar] button')?.focus()
  else if (!event.ctrlKey || !event.shiftKey) return true
  else if (event.code === 'KeyC' && terminal.hasSelection()) void navigator.clipboard.writeText(terminal.getSelection())
  else if (event.code === 'KeyF') onFind()
  else return event.code !== 'KeyV' // the browser pastes
  event.preventDefault()
  return false
}
