// The output of a command as it comes. It is read no faster than it is shown,
// and taken up again by its places when the connection is lost.
import { type Place, Problem, type ProblemBody, ask, sandboxPath, unreachable } from '@/lib/api'
import type { Stream } from '@/lib/queries'

export type Piece = { stream: Stream; data: Uint8Array; time: string; skipped: number }
export type Ended = { status: string; exit_code: number; signal?: string; reason?: string; duration_ms: number; stdout_bytes: number; stderr_bytes: number }

export type Listener = {
  onPiece: (piece: Piece) => void
  onState: (state: 'live' | 'lost') => void
  onEnd: (ended: Ended) => void
  onProblem: (problem: Problem) => void
}

const turn = 1 << 20 // bytes that are taken before the page may breathe

// follow reads until the end, or until it is aborted.
export async function follow(at: Place, operation: string, listener: Listener, signal: AbortSignal) {
  const places: Record<Stream, number> = { stdout: 0, stderr: 0 }
  for (let tries = 0; !signal.aborted; tries++) {
    try {
      const path = `${sandboxPath(at)}/commands/${encodeURIComponent(operation)}/stream?stdout=${places.stdout}&stderr=${places.stderr}`
      const response = await ask(path, { signal, headers: { Accept: 'text/event-stream' } })
      listener.onState('live')
      tries = 0
      if (await readEvents(response, places, listener)) return
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof Problem && error.code !== unreachable && error.status < 500) {
        listener.onProblem(error)
        return
      }
    }
    listener.onState('lost')
    await new Promise((done) => setTimeout(done, Math.min(5000, 250 * 2 ** Math.min(tries, 5))))
  }
}

// readEvents tells whether the stream has come to its end.
async function readEvents(response: Response, places: Record<Stream, number>, listener: Listener): Promise<boolean> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (!reader) return false
  let rest = ''
  let taken = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return false
    const blocks = (rest + value).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const event = readEvent(block)
      if (event?.name === 'output') taken += takePiece(event.data, places, listener)
      else if (event?.name === 'end') {
        listener.onEnd(JSON.parse(event.data))
        return true
      } else if (event?.name === 'problem') {
        const body: ProblemBody & { retry?: boolean } = JSON.parse(event.data)
        if (body.retry) return false
        listener.onProblem(new Problem(body.status ?? 0, body))
        return true
      }
    }
    if (taken < turn) continue
    taken = 0
    await new Promise((drawn) => setTimeout(drawn, 16))
  }
}

function readEvent(block: string): { name: string; data: string } | undefined {
  let name = 'message'
  const data: string[] = []
  for (const one of block.split('\n')) {
    if (one.startsWith('event:')) name = one.slice(6).trim()
    else if (one.startsWith('data:')) data.push(one.slice(5).trimStart())
  }
  return data.length > 0 ? { name, data: data.join('\n') } : undefined
}

function takePiece(text: string, places: Record<Stream, number>, listener: Listener): number {
  const piece: { stream: Stream; offset: number; data: string; time: string } = JSON.parse(text)
  const data = Uint8Array.from(atob(piece.data), (one) => one.charCodeAt(0))
  const skipped = Math.max(0, piece.offset - places[piece.stream])
  places[piece.stream] = piece.offset + data.length
  listener.onPiece({ stream: piece.stream, data, time: piece.time, skipped })
  return data.length
}
