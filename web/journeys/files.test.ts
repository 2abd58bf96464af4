import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Box, base, box, close, flaws, run, signIn } from './browser'

let at: Box

beforeAll(() => {
  at = box('files-here')
}, 60_000)
afterAll(close)

const files = (page: Page, path = '') => page.goto(`${base}/sandboxes/local/${at.id}/files${path && `?path=${encodeURIComponent(`/workspace/${path}`)}`}`)
const entry = (page: Page, name: string) => page.getByRole('treeitem', { name })
const editor = (page: Page) => page.locator('[data-editor] .view-lines')
const end = '\u0000'
const read = (name: string) => run(at, `cat ${name}; printf '\\0'`).split(end)[0]

test('a file is opened, edited and saved, and no letter is lost at any speed', async () => {
  run(at, 'mkdir -p src && printf "first\\n" > src/app.py')
  const { page, complaints } = await signIn()
  await files(page)
  await entry(page, 'src').click()
  await entry(page, 'app.py').click()
  await page.waitForURL('**path=%2Fworkspace%2Fsrc%2Fapp.py')
  await editor(page).getByText('first').waitFor()
  await editor(page).click()
  await page.keyboard.press('Control+Home')
  const typed = 'print("edited in console") # {[(\'no letter lost\')]}'.repeat(4)
  await page.keyboard.type(typed)
  await page.getByRole('img', { name: 'Unsaved' }).waitFor()
  await page.keyboard.press('Control+s')
  await page.getByRole('img', { name: 'Unsaved' }).waitFor({ state: 'detached' })
  expect(read('src/app.py')).toBe(`${typed}first\n`)
  expect(await flaws(page)).toEqual([])
  expect(complaints).toEqual([])
})
