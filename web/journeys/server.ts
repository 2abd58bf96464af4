// Starts the built server, with a state folder of its own.
import { execFile, execFileSync, spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export const bin = process.env.GLASSBOX ?? join(import.meta.dirname, '../../bin/glassbox')

export const newState = () => mkdtempSync(join(tmpdir(), 'glassbox-journeys-'))

export type Server = { base: string; state: string; stop: (signal?: NodeJS.Signals) => Promise<void> }

// serve starts a server on a port, or on a free one.
export async function serve(state: string, port = 0): Promise<Server> {
  const child = spawn(bin, ['serve', '--mirror', '--port', String(port), '--state-dir', state], { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise<void>((done) => child.on('exit', () => done()))
  const base = await new Promise<string>((found, failed) => {
    let said = ''
    child.stderr.on('data', (part: Buffer) => {
      said += part
      const at = /http:\/\/[\d.]+:\d+(?=\/sign-in)/.exec(said)
      if (at) found(at[0])
    })
    child.on('exit', () => failed(new Error(`glassbox serve ended: ${said}`)))
  })
  const stop = async (signal: NodeJS.Signals = 'SIGINT') => {
    child.kill(signal)
    await ended
  }
  return { base, state, stop }
}

// clear deletes what is left of a state, its server running or not.
export async function clear(state: string) {
  const run = promisify(execFile)
  const list = await run(bin, ['sandbox', 'list', '-o', 'json', '--state-dir', state]).catch(() => ({ stdout: '[]' }))
  for (const id of list.stdout.matchAll(/"id": ?"([^"]+)"/g)) await run(bin, ['sandbox', 'delete', id[1] ?? '', '--state-dir', state]).catch(() => {})
  rmSync(state, { recursive: true, force: true })
}

// leave makes a sandbox that is gone, and has left the given history. No server
// of this state may run.
export function leave(state: string, name: string, history: string): string {
  const run = (...args: string[]) => execFileSync(bin, [...args, '--state-dir', state], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  const id = run('sandbox', 'create', '--name', name).trim().split(/\s+/).at(-1) ?? ''
  run('sandbox', 'delete', id)
  const folder = join(state, 'sandboxes', id, 'history')
  for (const file of readdirSync(folder)) rmSync(join(folder, file))
  copyFileSync(history, join(folder, 'history.sqlite3'))
  return id
}
