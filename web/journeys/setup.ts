// Starts the built server with a state of its own, for all journeys.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const bin = process.env.GLASSBOX ?? join(import.meta.dirname, '../../bin/glassbox')

async function serve(state: string): Promise<{ child: ChildProcess; base: string }> {
  const child = spawn(bin, ['serve', '--mirror', '--port', '0', '--state-dir', state], { stdio: ['ignore', 'ignore', 'pipe'] })
  const base = await new Promise<string>((found, failed) => {
    let said = ''
    child.stderr?.on('data', (part: Buffer) => {
      said += part
      const at = /http:\/\/[\d.]+:\d+(?=\/sign-in)/.exec(said)
      if (at) found(at[0])
    })
    child.on('exit', () => failed(new Error(`glassbox serve ended: ${said}`)))
  })
  return { child, base }
}

export async function setup() {
  const state = mkdtempSync(join(tmpdir(), 'glassbox-journeys-'))
  const { child, base } = await serve(state)
  Object.assign(process.env, { GLASSBOX_BASE: base, GLASSBOX_STATE: state, GLASSBOX: bin }) // the journeys see them
  return async () => {
    const list = await promisify(execFile)(bin, ['sandbox', 'list', '-o', 'json', '--state-dir', state]).catch(() => ({ stdout: '[]' }))
    for (const id of list.stdout.matchAll(/"id": ?"([^"]+)"/g)) await promisify(execFile)(bin, ['sandbox', 'delete', id[1] ?? '', '--state-dir', state]).catch(() => {})
    const ended = new Promise((done) => child.on('exit', done))
    child.kill('SIGINT')
    await ended
    rmSync(state, { recursive: true, force: true })
  }
}
