import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Page } from 'playwright-core'
import { type Box, base, box, close, flaws, link, run, signIn } from './browser'

let at: Box

beforeAll(() => {
  at = box('commands')
}, 60_000)
afterAll(close)

const open = (page: Page) => page.goto(`${base}/sandboxes/local/${at.id}/commands`)
const line = (page: Page) => page.getByRole('textbox', { name: 'Command', exact: true })
const output = (page: Page) => page.getByRole('region', { name: 'Output', exact: true })

async function start(page: Page, command: string) {
  await line(page).fill(command)
  await line(page).press('Enter')
}

test('a command is run, both streams in the order in which they came', async () => {
  const { page, complaints } = await signIn()
  await open(page)
  await start(page, `printf '\\033[32mgreen\\033[0m\\n'; sleep 0.3; echo oops >&2; sleep 0.3; printf '10%%\\r99%%\\n'; exit 4`)
  await output(page).getByText('99%').waitFor()
  await page.getByText('exit 4').first().waitFor()
  const text = await output(page).innerText()
  expect(text.indexOf('green')).toBeLessThan(text.indexOf('oops'))
  expect(text.indexOf('oops')).toBeLessThan(text.indexOf('99%'))
  expect(text).not.toContain('10%')
  expect(await output(page).getByText('green').evaluate((node) => node.style.color)).toBe('var(--t-green)')
  expect(await flaws(page)).toEqual([])
  expect(complaints).toEqual([])
})

test('folder, environment, time limit and input', async () => {
  const { page } = await signIn()
  await open(page)
  await page.getByRole('button', { name: /Folder, environment/ }).click()
  await page.getByRole('textbox', { name: 'Folder' }).fill('/tmp')
  await page.getByRole('textbox', { name: 'Environment' }).fill('WHO=研究员')
  await page.getByRole('checkbox', { name: /input/ }).check()
  await start(page, 'echo "$WHO in $(pwd)"; read x; echo "got $x"; cat; echo end')
  await output(page).getByText('研究员 in /tmp').waitFor()
  await page.getByRole('textbox', { name: 'Input for the program' }).fill('from here')
  await page.keyboard.press('Enter')
  await output(page).getByText('got from here').waitFor()
  await page.getByRole('button', { name: 'End of input' }).click()
  await output(page).getByText('end', { exact: true }).waitFor()
  await page.getByRole('textbox', { name: 'Time limit' }).fill('0.5')
  await page.getByRole('checkbox', { name: /input/ }).uncheck()
  await start(page, 'sleep 60')
  await page.getByLabel('timed out').first().waitFor()
})

test('a stop stops, and what does not end of it is killed', async () => {
  const { page } = await signIn()
  await open(page)
  await start(page, `trap '' INT TERM; echo deaf; while :; do sleep 0.1; done`)
  await output(page).getByText('deaf', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByRole('button', { name: 'Kill' }).click()
  await page.getByRole('button', { name: 'Run again' }).first().waitFor()
  expect(run(at, `pgrep -fc '[d]eaf' || true`).trim()).toBe('0')
})

test('several run at once, and are found again after a reload', async () => {
  const { page } = await signIn()
  await open(page)
  await start(page, 'i=0; while [ ! -e stop-all ]; do echo a-$((i=i+1)); sleep 0.1; done')
  await output(page).getByText('a-3', { exact: true }).waitFor()
  await start(page, 'echo second; while [ ! -e stop-all ]; do sleep 0.1; done')
  await output(page).getByText('second', { exact: true }).waitFor()
  await page.getByRole('heading', { name: 'Running, 2' }).waitFor()
  await page.getByRole('button', { name: /a-\$\(\(i/ }).click()
  await page.reload()
  await output(page).getByText('a-1', { exact: true }).waitFor() // from the first line on
  run(at, 'touch stop-all')
  await page.getByRole('heading', { name: /Running/ }).waitFor({ state: 'detached' })
  const lines = (await output(page).innerText()).match(/a-\d+/g) ?? []
  expect(lines).toEqual([...new Set(lines)])
})

test('earlier commands come with arrow-up, and are run again', async () => {
  const { page } = await signIn()
  await open(page)
  await start(page, 'echo the-first')
  await output(page).getByText('the-first', { exact: true }).waitFor()
  await start(page, 'echo the-second')
  await output(page).getByText('the-second', { exact: true }).waitFor()
  await page.getByText('echo the-second').first().waitFor()
  await line(page).press('ArrowUp')
  await expect.poll(() => line(page).inputValue()).toBe('echo the-second')
  await line(page).press('ArrowUp')
  expect(await line(page).inputValue()).toBe('echo the-first')
  await line(page).press('ArrowDown')
  expect(await line(page).inputValue()).toBe('echo the-second')
})

test('much output stays smooth, is searched and downloaded', async () => {
  const { page, complaints } = await signIn()
  await open(page)
  await start(page, 'seq 1 300000; echo needle in the hay')
  await output(page).getByText('needle in the hay').waitFor({ timeout: 60_000 })
  await page.getByText('300,001 lines').waitFor()
  expect(await output(page).locator('div').count()).toBeLessThan(200)
  await page.getByRole('button', { name: 'Find in output' }).click()
  await page.getByRole('textbox', { name: 'Find in output' }).fill('299999')
  await output(page).getByText('299999', { exact: true }).waitFor()
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download stdout' }).click()])
  expect(readFileSync(await download.path(), 'utf8')).toMatch(/^1\n2\n[^]*\n300000\nneedle in the hay\n$/)
  expect(complaints).toEqual([])
})

test('what a program serves on a port is seen in a tab of its own', async () => {
  const { page } = await signIn()
  run(at, 'echo served-from-inside > index.html; (python3 -m http.server 8123 >/dev/null 2>&1 &); for i in $(seq 100); do curl -s localhost:8123 >/dev/null && break; sleep 0.1; done')
  const local = base.replace('127.0.0.1', 'localhost')
  await page.goto(`${local}/sign-in`)
  await page.goto(link().replace('127.0.0.1', 'localhost'))
  await page.waitForURL('**/sandboxes')
  await page.goto(`${local}/sandboxes/local/${at.id}/overview`)
  await page.getByRole('textbox', { name: 'Port' }).fill('8123')
  const [tab] = await Promise.all([page.context().waitForEvent('page'), page.getByRole('button', { name: 'Open port' }).click()])
  await tab.getByText('served-from-inside').waitFor()
  expect(await tab.evaluate(() => document.cookie)).toBe('')
  expect(await tab.evaluate(() => window.opener)).toBe(null)
})
