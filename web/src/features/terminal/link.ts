// The way to a terminal: a socket that comes back by itself, with all that was
// shown meanwhile, and with what was typed.
import { type Operation, type Place, Problem, type ProblemBody, operationPath, prefix, read, sandboxPath } from '@/lib/api'
import { isRunning } from '@/lib/operation'

export type LinkState = 'connecting' | 'open' | 'lost' | 'ended' | 'refused'
export type Exit = { code: number; status: string; signal: string; reason: string }

export type Listener = {
  // onData gets what is shown; done is called when it is on the screen.
  onData: (data: Uint8Array, done: () => void) => void
  // onMissing tells of bytes that are not shown: they are kept no more, or came
  // faster than a screen shows them.
  onMissing: (bytes: number) => void
  onChange: () => void
}

const window = 512 << 10 // bytes on their way
const firstBytes = 1 << 20 // of what was shown before
const patience = 1000 // ms for which the screen may be behind
const lastBytes = 32 << 10 // with which one that is goes on
const frameBytes = 32 << 10
const maxWaiting = 256 << 10 // typed while the connection is lost

export class Link {
  state: LinkState = 'connecting'
  writer?: boolean // undefined: not known yet
  exit?: Exit
  problem?: Problem
  replaying = true // what comes was shown before: nobody waits for answers to it
  private offset?: number // of the next byte
  private shown = 0
  private told = 0
  private behind?: number // since when
  private turn = 0 // counts the connections
  private socket?: WebSocket
  private waiting: Uint8Array[] = []
  private size?: { columns: number; rows: number }
  private tries = 0
  private timer?: ReturnType<typeof setTimeout>
  private closed = false

  constructor(private readonly at: Place, private readonly operation: string, private readonly listener: Listener) {
    addEventListener('online', this.hurry)
    this.connect()
  }

  close() {
    this.closed = true
    removeEventListener('online', this.hurry)
    clearTimeout(this.timer)
    this.socket?.close()
  }

  type(data: Uint8Array) {
    for (let from = 0; from < data.length; from += frameBytes) this.waiting.push(data.subarray(from, from + frameBytes))
    while (this.waiting.reduce((sum, one) => sum + one.length, 0) > maxWaiting) this.waiting.shift()
    this.flush()
  }

  resize(columns: number, rows: number) {
    this.size = { columns, rows }
    this.order({ type: 'resize', columns, rows })
  }

  take() {
    this.order({ type: 'role', writer: true })
    if (this.size) this.order({ type: 'resize', ...this.size })
  }

  private order(frame: object) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame))
  }

  private flush() {
    if (this.state !== 'open') return
    for (const one of this.waiting.splice(0)) this.socket?.send(new Uint8Array(one))
  }

  private hurry = () => {
    if (this.state !== 'lost') return
    clearTimeout(this.timer)
    this.connect()
  }

  private set(change: Partial<Pick<Link, 'state' | 'writer' | 'exit' | 'problem'>>) {
    Object.assign(this, change)
    if (!this.closed) this.listener.onChange()
  }

  private connect(offset = this.offset ?? -firstBytes) {
    const from = `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${prefix}${sandboxPath(this.at)}/terminals/${encodeURIComponent(this.operation)}/socket`
    const socket = new WebSocket(`${from}?window=${window}&offset=${offset}`)
    socket.binaryType = 'arraybuffer'
    this.socket = socket
    this.replaying = true
    this.behind = undefined
    this.turn++
    socket.onopen = () => {
      this.tries = 0
      this.set({ state: 'open' })
      if (this.size) this.order({ type: 'resize', ...this.size })
      this.flush()
    }
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
      if (typeof data === 'string') this.hear(JSON.parse(data))
      else this.show(new Uint8Array(data))
    }
    socket.onclose = () => void this.lose(socket)
  }

  private hear(frame: { type: string; offset: number; writer: boolean; problem: Partial<ProblemBody> } & Exit) {
    if (frame.type === 'start') {
      if (this.offset !== undefined && frame.offset > this.offset) this.listener.onMissing(frame.offset - this.offset)
      else if (this.offset === undefined && frame.offset > 0) this.listener.onMissing(frame.offset)
      this.offset = this.shown = this.told = frame.offset
    } else if (frame.type === 'live') this.replaying = false
    else if (frame.type === 'role') this.set({ writer: frame.writer })
    else if (frame.type === 'exit') this.set({ state: 'ended', exit: frame })
    else if (frame.type === 'problem') this.set({ state: 'refused', problem: new Problem(frame.problem.status ?? 0, frame.problem) })
  }

  private show(data: Uint8Array) {
    const { turn } = this
    this.offset = (this.offset ?? 0) + data.length
    this.listener.onData(data, () => {
      if (turn !== this.turn) return
      this.shown += data.length
      if (this.shown - this.told < window / 4) return
      this.told = this.shown
      this.order({ type: 'shown', offset: this.shown })
    })
    this.keepUp()
  }

  // keepUp goes on with the newest, when more is printed than a screen shows:
  // who looks wants to see what is, and to be heard.
  private keepUp() {
    if ((this.offset ?? 0) - this.shown < window / 2) this.behind = undefined
    else this.behind ??= performance.now()
    if (this.replaying || this.behind === undefined || performance.now() - this.behind < patience) return
    this.socket?.close()
    this.connect(-lastBytes)
  }

  // lose comes back, unless there is nothing to come back to.
  private async lose(socket: WebSocket) {
    if (this.closed || socket !== this.socket || this.state === 'ended' || this.state === 'refused') return
    this.set({ state: 'lost' })
    if (this.tries > 0) await this.look()
    if (this.closed || this.state !== 'lost') return
    this.timer = setTimeout(() => this.connect(), Math.min(5000, 250 * 2 ** this.tries++))
  }

  // look asks what has become of it: a socket does not tell why it fails.
  private async look() {
    try {
      const op = await read<Operation>(operationPath(this.at, this.operation))
      if (!isRunning(op)) this.set({ state: 'ended', exit: { code: op.command?.exit_code ?? -1, status: op.status, signal: '', reason: '' } })
    } catch (error) {
      if (error instanceof Problem && (error.status === 403 || error.status === 404)) this.set({ state: 'refused', problem: error })
    }
  }
}
