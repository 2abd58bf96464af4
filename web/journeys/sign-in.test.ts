import { afterAll, expect, test } from 'vitest'
import { base, close, flaws, link, open, signIn } from './browser'

afterAll(close)

test('a link signs in once, and leaves the address', async () => {
  const { page, complaints } = await open()
  const one = link()
  await page.goto(one)
  await page.waitForURL('**/sandboxes')
  await page.getByRole('heading', { name: 'Sandboxes' }).waitFor()
  expect(page.url()).not.toContain('gbl_')
  const other = await open()
  await other.page.goto(one)
  await other.page.getByRole('alert').waitFor()
  expect(await other.page.getByRole('alert').textContent()).toContain('glassbox login-link')
  expect(other.page.url()).not.toContain('gbl_')
  expect([...complaints, ...other.complaints]).toEqual([])
})

test('who is not signed in comes back to the same place', async () => {
  const { page } = await open()
  await page.goto(`${base}/connections`)
  await page.waitForURL('**/sign-in?next=*')
  expect(await flaws(page)).toEqual([])
  await page.evaluate(`location.hash = ${JSON.stringify(new URL(link()).hash)}`)
  await page.waitForURL('**/connections')
  await page.getByRole('heading', { name: 'Connections' }).waitFor()
})

test('who is signed out meanwhile is led to the sign-in, and back with the filter', async () => {
  const { page } = await signIn()
  await page.goto(`${base}/sandboxes?q=nothing-like-it`)
  await page.getByText('Nothing matches.').or(page.getByText('No sandboxes yet.')).waitFor()
  await page.evaluate(`fetch('/api/v1/auth/sign-out', { method: 'POST' })`)
  await page.waitForURL('**/sign-in?next=*')
  await page.evaluate(`location.hash = ${JSON.stringify(new URL(link()).hash)}`)
  await page.waitForURL('**/sandboxes?q=nothing-like-it')
})

test('a password signs in, and a wrong one says so', async () => {
  const { page } = await signIn()
  await page.goto(`${base}/settings/account`)
  await page.getByLabel('New password').fill('correct horse battery')
  await page.getByRole('button', { name: 'Set password' }).click()
  await page.getByText('Password changed').waitFor()
  const other = await open()
  await other.page.goto(`${base}/sign-in`)
  await other.page.getByLabel('Name').fill('admin')
  await other.page.getByLabel('Password', { exact: true }).fill('wrong')
  await other.page.getByRole('button', { name: 'Sign in' }).click()
  await other.page.getByRole('alert').waitFor()
  await other.page.getByLabel('Password', { exact: true }).fill('correct horse battery')
  await other.page.getByRole('button', { name: 'Sign in' }).click()
  await other.page.waitForURL('**/sandboxes')
})

test('language and theme are switched and kept', async () => {
  const { page } = await signIn({ colorScheme: 'light' })
  await page.getByRole('button', { name: 'Switch to Chinese' }).click()
  await page.getByRole('heading', { name: '沙箱' }).waitFor()
  await page.getByRole('button', { name: '主题' }).click()
  await page.getByRole('button', { name: '主题：浅色' }).click()
  await page.getByRole('button', { name: '主题：深色' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: '沙箱' }).waitFor()
  expect(await page.evaluate('document.documentElement.dataset.theme + document.documentElement.lang')).toBe('darkzh')
})
