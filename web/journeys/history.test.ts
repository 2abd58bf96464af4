import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Box, base, begin, box, close, flaws, glassbox, run, signIn } from './browser'

let at: Box

// Two agents, fifty commands, one of which failed.
beforeAll(() => {
  at = box('seed-measure')
  run(at, 'for i in $(seq 1 20); do echo "$i" > "file-$i.txt"; done', { agent: 'writer', run: 'run-write', thread: 'thread-1' })
  for (let i = 0; i < 12; i++) run(at, `echo step ${i}`, { agent: i % 2 ? 'writer' : 'tester', run: i % 2 ? 'run-write' : 'run-test', thread: 'thread-1' })
  run(at, 'echo "running the tests"; printf "\\033[31mAssertionError: 256 <= 8\\033[0m\\n" >&2; exit 1', { agent: 'tester', run: 'run-test', thread: 'thread-1' })
}, 120_000)
afterAll(close)

const rows = '[role=row][aria-label*=", "]'

test('from the list to the stderr of the failed command in two clicks', async () => {
  const { page, complaints } = await signIn()
  await page.getByRole('link', { name: 'seed-measure' }).click()
  await page.getByText('AssertionError: 256 <= 8').first().waitFor() // said without being asked
  await page.getByRole('row', { name: /failed, exit 1/ }).click()
  await page.getByRole('region', { name: 'Output' }).getByText('AssertionError: 256 <= 8').waitFor()
  const colour = await page.getByRole('region', { name: 'Output' }).getByText('AssertionError').evaluate((node) => node.style.color)
  expect(colour).toBe('var(--t-red)')
  expect(page.url()).toContain('op=')
  expect(await flaws(page)).toEqual([])
  expect(complaints).toEqual([])
})

test('or with one key', async () => {
  const { page } = await signIn()
  await page.goto(`${base}/sandboxes/local/${at.id}/history`)
  await page.locator(rows).first().waitFor()
  await page.keyboard.press('n')
  await page.getByRole('region', { name: 'Output' }).getByText('AssertionError').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('complementary', { name: 'Details' }).waitFor({ state: 'detached' })
})

test('filters stand in the address', async () => {
  const { page } = await signIn()
  await page.goto(`${base}/sandboxes/local/${at.id}/history`)
  const input = page.getByRole('textbox', { name: /Filter/ })
  await input.fill('actor:writer')
  await input.press('Enter')
  await page.waitForURL('**actor=writer**')
  await page.getByRole('row', { name: /step 11/ }).waitFor()
  expect(await page.getByRole('row', { name: /step 10/ }).count()).toBe(0)
  await page.goBack()
  await page.getByRole('row', { name: /step 10/ }).waitFor()
  await page.getByRole('button', { name: 'Failures' }).click()
  await page.getByRole('row', { name: /failed, exit 1/ }).waitFor()
  expect(await page.locator(rows).count()).toBe(1)
  await page.getByRole('button', { name: 'By run' }).click()
  await page.getByRole('menuitem', { name: 'By actor' }).click()
  await page.waitForURL('**group=actor**')
})

test('what is done shows up at once', async () => {
  const { page } = await signIn()
  await page.goto(`${base}/sandboxes/local/${at.id}/history`)
  await page.getByRole('switch', { name: /live/ }).waitFor()
  await page.locator(rows).first().waitFor()
  const working = begin('exec', '--agent', 'late-agent', at.id, '-c', 'echo begun; while [ ! -e go ]; do sleep 0.1; done; echo over')
  await page.getByRole('row', { name: /running/ }).waitFor()
  run(at, 'touch go')
  await page.getByRole('row', { name: /succeeded, echo begun/ }).waitFor()
  working.kill()
})

test('all histories are searched, also in what was printed', async () => {
  const { page, complaints } = await signIn()
  await page.goto(`${base}/history?group=none`)
  const row = page.getByRole('row', { name: /failed, exit 1/ }).first()
  await row.waitFor()
  await page.getByRole('textbox', { name: /Filter/ }).fill('256 <= 8')
  await page.waitForURL('**q=256**')
  await page.locator('mark').first().waitFor()
  await page.getByRole('row', { name: /failed, exit 1/ }).first().click()
  await page.getByRole('complementary', { name: 'Details' }).getByRole('link', { name: 'seed-measure' }).waitFor()
  expect(await flaws(page)).toEqual([])
  expect(complaints).toEqual([])
})

test('a permalink leads to the operation, also when the sandbox is gone', async () => {
  const gone = box('soon-gone')
  run(gone, 'echo last words')
  const { page } = await signIn()
  await page.goto(`${base}/sandboxes/local/${gone.id}/history`)
  await page.getByRole('row', { name: /last words/ }).click()
  await page.getByRole('button', { name: 'Copy link' }).click()
  const link = await page.evaluate('navigator.clipboard.readText()')
  glassbox('sandbox', 'delete', gone.id)
  await page.goto(String(link))
  await page.waitForURL('**/history?op=**')
  await page.getByRole('region', { name: 'Output' }).getByText('last words').waitFor()
  await page.getByText(/Ended .*Its history is whole/).waitFor()
})

test('what is filtered is exported', async () => {
  const { page } = await signIn()
  await page.goto(`${base}/sandboxes/local/${at.id}/history?actor=tester`)
  await page.locator(rows).first().waitFor()
  await page.getByRole('button', { name: 'Export' }).click()
  await page.getByRole('dialog').getByRole('combobox').selectOption('csv')
  const coming = page.waitForEvent('download')
  await page.getByRole('dialog').getByRole('button', { name: 'Export' }).click()
  const text = readFileSync(await (await coming).path(), 'utf8')
  expect(text.split('\r\n').filter(Boolean)).toHaveLength(1 + 7)
  expect(text).toContain('tester')
  expect(text).not.toContain('writer')
})

test('changes of files are told', async () => {
  const { page } = await signIn()
  await page.goto(`${base}/sandboxes/local/${at.id}/history?actor=writer`)
  await page.getByRole('row', { name: /file-\$i/ }).click()
  await page.getByRole('tab', { name: /Changes/ }).click()
  await page.getByRole('region', { name: 'Changes' }).getByText(/file-20\.txt/).waitFor()
})

test('long output comes page by page', async () => {
  const long = box('long-output')
  run(long, 'seq 1 200000')
  const { page } = await signIn()
  await page.goto(`${base}/sandboxes/local/${long.id}/history`)
  await page.getByRole('row', { name: /seq 1 200000/ }).click()
  await page.getByRole('button', { name: /Show more output/ }).waitFor()
  await page.getByRole('button', { name: 'Find in output' }).click()
  await page.getByRole('textbox', { name: 'Find in output' }).fill('4242')
  await page.getByRole('region', { name: 'Output' }).getByText('24242').first().waitFor()
})
