import { afterAll, expect, test } from 'vitest'
import { base, close, flaws, open, signIn } from './browser'

afterAll(close)

test('a token is shown once, works, and is revoked', async () => {
  const { page, complaints } = await signIn()
  await page.goto(`${base}/settings/tokens`)
  await page.getByRole('button', { name: 'New token' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('ci')
  await page.getByRole('dialog').getByRole('button', { name: 'Make token' }).click()
  const secret = (await page.getByRole('dialog').locator('code').textContent()) ?? ''
  const ask = async () => (await fetch(`${base}/api/v1/sandboxes`, { headers: { Authorization: `Bearer ${secret}` } })).status
  expect(await ask()).toBe(200)
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click()
  expect(await flaws(page)).toEqual([])
  await page.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke token' }).click()
  await page.getByText('Revoked ci').waitFor()
  expect(await ask()).toBe(401)
  expect(complaints).toEqual([])
})

test('a viewer is made, signs in by link, and sees what it may not do', async () => {
  const { page } = await signIn()
  await page.goto(`${base}/settings/users`)
  await page.getByRole('button', { name: 'New user' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('teammate')
  await page.getByRole('dialog').getByRole('button', { name: 'Make user' }).click()
  await page.getByRole('button', { name: 'Actions for teammate' }).click()
  await page.getByRole('menuitem', { name: 'Sign-in link' }).click()
  const link = (await page.getByRole('dialog').locator('code').textContent()) ?? ''
  expect(await flaws(page)).toEqual([])
  const other = await open()
  await other.page.goto(link)
  await other.page.waitForURL('**/sandboxes')
  const create = other.page.getByRole('button', { name: 'New sandbox' })
  expect(await create.isDisabled()).toBe(true)
  expect(await create.getAttribute('title')).toContain('operator')
  await other.page.goto(`${base}/settings/account`)
  expect(await other.page.getByRole('link', { name: 'Users' }).count()).toBe(0)
  await page.goto(`${base}/settings/sessions`)
  await page.getByLabel('Of everybody').check()
  await page.getByRole('listitem').filter({ hasText: 'teammate' }).getByRole('button', { name: 'Sign out' }).click()
  await page.getByText('That browser is signed out').waitFor()
  await other.page.goto(`${base}/sandboxes`)
  await other.page.waitForURL('**/sign-in**')
})

test('on a phone everything is reached', async () => {
  const { page, complaints } = await signIn({ viewport: { width: 390, height: 844 }, locale: 'zh-CN' })
  await page.getByRole('navigation', { name: '主导航' }).getByRole('link', { name: '历史' }).click()
  await page.getByRole('heading', { name: '历史' }).waitFor()
  await page.getByRole('button', { name: '更多' }).click()
  await page.getByRole('menuitem', { name: '连接' }).click()
  await page.getByRole('heading', { name: '连接' }).waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390)
  expect(complaints).toEqual([])
})
