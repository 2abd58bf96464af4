// Histories that were not made for the page: one that the Python package wrote,
// and one of 100 000 operations. Both are of sandboxes that are gone.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { close, signIn } from './browser'
import { type Server, clear, leave, newState, serve } from './server'

const root = join(import.meta.dirname, '../..')
const many = 100_000
let at: Server
let seed: string
let long: string

beforeAll(async () => {
  const state = newState()
  seed = leave(state, 'python', join(root, 'history/sqlite/testdata/seed-history.sqlite3'))
  const file = join(state, 'long.sqlite3')
  execFileSync('go', ['run', './internal/bench/long', '-file', file, '-n', String(many)], { cwd: root })
  long = leave(state, 'long-runner', file)
  at = await serve(state)
}, 300_000)
afterAll(async () => {
  await at.stop()
  await clear(at.state)
  await close()
})

const history = (id: string, more = '') => `${at.base}/sandboxes/local/${id}/history${more}`
const rows = '[role=row][aria-label*=", "]'

test('what the Python package wrote is read as it is', async () => {
  const { page, complaints } = await signIn({}, at.state)
  await page.goto(history(seed, '?group=none&reads=true'))
  await page.getByText('The beginning of this history').waitFor()
  expect(await page.locator(rows).count()).toBeGreaterThanOrEqual(18) // of 21; what is out of sight is not there
  await page.getByRole('row', { name: /outcome unknown, .*echo oops/ }).click() // its end was not written down
  await page.getByRole('region', { name: 'Output' }).getByText('oops').waitFor()
  await page.getByRole('row', { name: /echo 你好 from planner/ }).click()
  await page.getByRole('region', { name: 'Output' }).getByText('你好 from planner').waitFor()
  expect(complaints).toEqual([])
})

test('100 000 operations are a list like any other', async () => {
  const { page, complaints } = await signIn({}, at.state)
  // The mirror takes them in meanwhile; a part is enough for a list, not for counts.
  await expect.poll(async () => (await (await page.request.get(`${at.base}/api/v1/connections/local/sandboxes/${long}/summary`)).json()).operations, { timeout: 240_000, interval: 1000 }).toBe(many)
  await page.goto(history(long))
  await page.getByRole('row', { name: /research-agent|code-reviewer|数据分析员/ }).first().waitFor()
  await page.getByRole('img', { name: /^100,000 operations, [\d,]+ failed/ }).waitFor() // the strip tells of all
  await page.getByRole('gridcell').getByText('150 ops').first().waitFor() // as does the head of a run of which a part is loaded
  const list = page.getByRole('grid', { name: 'Operations' })
  await list.evaluate((node) => node.scrollTo({ top: node.scrollHeight }))
  await expect.poll(() => page.locator('[role=row]').count()).toBeGreaterThan(10)
  expect(await page.locator('[role=row]').count()).toBeLessThan(120) // no more than fits
  await page.goto(history(long, '?run=run-0300'))
  await page.getByText('The beginning of this history').waitFor()
  expect(complaints).toEqual([])
}, 300_000)
