// What the journeys share: the browser, somebody who is signed in, and agents
// at work in sandboxes.
import { execFile, execFileSync } from 'node:child_process'
import { Axe } from './axe'
import { type Browser, type BrowserContextOptions, type Page, chromium } from 'playwright-core'

const need = (name: string) => {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set`)
  return value
}
export const base = need('GLASSBOX_BASE')
const state = need('GLASSBOX_STATE')
const bin = need('GLASSBOX')

// glassbox runs a command of the program, as an agent would, and returns what
// it printed; its exit code is that of the command in the sandbox.
export function glassbox(...args: string[]): string {
  try {
    return execFileSync(bin, [...args.slice(0, 1), '--state-dir', state, ...args.slice(1)], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    if (error instanceof Error && 'stdout' in error) return String(error.stdout)
    throw error
  }
}

export function begin(...args: string[]) {
  return execFile(bin, [...args.slice(0, 1), '--state-dir', state, ...args.slice(1)], () => {})
}

export type Box = { id: string; name: string }

// box makes a sandbox that stays.
export function box(name: string): Box {
  return { id: glassbox('sandbox', 'create', '--name', name).trim().split(/\s+/).at(-1) ?? '', name }
}

// run lets an agent run a command.
export function run(at: Box, command: string, options: { agent?: string; run?: string; thread?: string; timeout?: string } = {}): string {
  const flags = Object.entries({ '--agent': options.agent ?? 'research-agent', '--run-id': options.run, '--thread': options.thread, '--timeout': options.timeout }).flatMap(([flag, value]) => (value ? [flag, value] : []))
  return glassbox('exec', ...flags, at.id, '-c', command)
}

export const link = (of = state) => /http\S+/.exec(execFileSync(bin, ['login-link', '--state-dir', of], { encoding: 'utf8' }))?.[0] ?? ''

let browser: Browser | undefined
export const launch = async () => (browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] }))
export const close = () => browser?.close()

// open gives a page of its own, and collects what it complains of.
export async function open(options: BrowserContextOptions = {}): Promise<{ page: Page; complaints: string[] }> {
  const context = await (await launch()).newContext({ locale: 'en-US', viewport: { width: 1440, height: 900 }, permissions: ['clipboard-read', 'clipboard-write'], ...options })
  context.setDefaultTimeout(15_000)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (said) => said.type() === 'error' && !/status of (4\d\d|5\d\d)|net::ERR/.test(said.text()) && complaints.push(said.text()))
  page.on('dialog', (dialog) => {
    complaints.push(`a dialog of the browser: ${dialog.message()}`)
    void dialog.dismiss()
  })
  return { page, complaints }
}

// signIn opens a page by a link, of the server of a state.
export async function signIn(options: BrowserContextOptions = {}, of = state) {
  const opened = await open(options)
  await opened.page.goto(link(of))
  await opened.page.waitForURL('**/sandboxes')
  return opened
}

// flaws are what axe finds serious.
export async function flaws(page: Page): Promise<string[]> {
  return new Axe(page).serious()
}
