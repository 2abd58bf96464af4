import { afterAll, expect, test } from 'vitest'
import { base, box, close, run, signIn } from './browser'

afterAll(close)

// Whatever an agent writes is text: it makes no element, runs no script, asks
// nothing, changes no title, copies nothing and turns nothing around.
test('hostile names and output do no harm', async () => {
  const at = box('<img src=x onerror=alert(1)>\u202e\u200bgnp')
  const output = [
    '<script>window.harmed = 1</script><img src=x onerror="window.harmed=1">', '\\033]0;new title\\007', '\\033]52;c;aGFybWVk\\007', '\\033]8;;javascript:window.harmed=1\\007a link\\033]8;;\\007',
    '\\033[2J\\033[H\\033[6n\\033[?1049h', 'before\\342\\200\\256after', 'zero\\342\\200\\213width', '\\033[31mred\\033[0m',
  ].join('\\n')
  run(at, `printf '${output}\\n'; printf 'x%.0s' $(seq 1 100000); touch '<b>bold<b>.txt'`, { agent: '<i>agent</i>\u202e', run: '<u>run</u>' })
  const { page, complaints } = await signIn()
  await page.evaluate('navigator.clipboard.writeText("mine")')
  await page.getByText('<img src=x onerror=alert(1)>⟨U+202E⟩⟨U+200B⟩gnp').first().waitFor()
  await page.goto(`${base}/sandboxes/local/${at.id}/history`)
  await page.getByText('<i>agent</i>⟨U+202E⟩').first().waitFor()
  await page.getByRole('row', { name: /printf/ }).click()
  const printed = page.getByRole('region', { name: 'Output' })
  await printed.getByText('before⟨U+202E⟩after').waitFor()
  await printed.getByText('zero⟨U+200B⟩width').waitFor()
  await printed.getByText('<script>window.harmed = 1</script>').waitFor()
  await printed.getByText('a link').waitFor()
  expect(await printed.getByText('red', { exact: true }).evaluate((node) => node.style.color)).toBe('var(--t-red)')
  expect(await printed.locator('a, img, script, b').count()).toBe(0)
  await page.getByRole('tab', { name: /Changes/ }).click()
  await page.getByRole('region', { name: 'Changes' }).getByText('<b>bold<b>.txt').waitFor()
  await page.goto(`${base}/history?q=harmed`)
  await page.locator('mark').first().waitFor()
  expect(await page.evaluate('window.harmed')).toBeUndefined()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe('mine')
  expect(await page.title()).toContain('Glassbox')
  expect(await page.locator('img, b, u').filter({ hasText: /bold|run/ }).count()).toBe(0)
  expect(complaints).toEqual([])
})
