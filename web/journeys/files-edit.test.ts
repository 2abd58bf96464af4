import { createHash } from 'node:crypto'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Box, base, box, close, flaws, link, run, signIn } from './browser'

let at: Box

beforeAll(() => {
  at = box('files-edit')
}, 60_000)
afterAll(close)

const files = (page: Page, path = '', more = '') => page.goto(`${base}/sandboxes/local/${at.id}/files?path=${encodeURIComponent(`/workspace${path && `/${path}`}`)}${more}`)
const editor = (page: Page) => page.locator('[data-editor] .view-lines')
const unsaved = (page: Page) => page.getByRole('img', { name: 'Unsaved' })
const hex = (name: string) => run(at, `python3 -c 'print(open("${name}","rb").read().hex())'`).trim()
const put = (name: string, bytes: Uint8Array) => run(at, `python3 -c 'open("${name}","wb").write(bytes.fromhex("${Buffer.from(bytes).toString('hex')}"))'`)
const bytesOf = (text: string) => Buffer.from(text, 'latin1')

async function type(page: Page, text: string, key = 'Control+Home') {
  await editor(page).click()
  await page.keyboard.press(key)
  await page.keyboard.type(text)
  await unsaved(page).waitFor()
}
const save = async (page: Page) => {
  await page.keyboard.press('Control+s')
  await unsaved(page).waitFor({ state: 'detached' })
}

test('FB-019 one small change changes one byte, and saving nothing writes nothing', async () => {
  put('bom.txt', bytesOf('\xef\xbb\xbfa\r\nb\r\nc'))
  const { page, complaints } = await signIn()
  await files(page, 'bom.txt')
  await editor(page).getByText('b', { exact: true }).waitFor()
  await page.getByText('UTF-8 with BOM').waitFor()
  await page.getByText('CRLF').waitFor()
  const before = run(at, 'stat -c %y bom.txt')
  await editor(page).click()
  await page.keyboard.press('Control+s')
  await page.keyboard.press('Control+Home')
  await page.keyboard.press('ArrowDown')
  expect(run(at, 'stat -c %y bom.txt')).toBe(before)
  await page.keyboard.press('Delete')
  await page.keyboard.type('B')
  await unsaved(page).waitFor()
  await save(page)
  expect(hex('bom.txt')).toBe(bytesOf('\xef\xbb\xbfa\r\nB\r\nc').toString('hex'))
  expect(complaints).toEqual([])
})

test('mixed line ends and other encodings are kept byte for byte', async () => {
  const cases: [name: string, before: Buffer, typed: string, after: Buffer][] = [
    ['mixed.txt', bytesOf('one\r\ntwo\nthree\r\rlast\n'), 'X', bytesOf('Xone\r\ntwo\nthree\r\rlast\n')],
    ['old-mac.txt', bytesOf('a\rb\r'), 'X', bytesOf('Xa\rb\r')],
    ['gbk.txt', Buffer.from('d6d0cec4c4dac8dd0d0ab2e2cad4', 'hex'), '中', Buffer.from('d6d0d6d0cec4c4dac8dd0d0ab2e2cad4', 'hex')],
    ['latin.txt', bytesOf('caf\xe9 \x80\x81\x9d\n'), 'X€', bytesOf('X\x80caf\xe9 \x80\x81\x9d\n')],
    ['utf16.txt', Buffer.from('fffe61000d000a00', 'hex'), 'é', Buffer.from('fffee90061000d000a00', 'hex')],
  ]
  const { page } = await signIn()
  for (const [name, before, typed, after] of cases) {
    put(name, before)
    await files(page, name)
    await editor(page).waitFor()
    await editor(page).click()
    await page.keyboard.press('Control+Home')
    await page.keyboard.insertText(typed)
    await unsaved(page).waitFor()
    await save(page)
    expect([name, hex(name)]).toEqual([name, after.toString('hex')])
  }
  await page.getByText('UTF-16 LE with BOM').waitFor()
})

test('a letter that an encoding lacks is told, and nothing is written', async () => {
  put('latin1.txt', bytesOf('caf\xe9\n'))
  const { page } = await signIn()
  await files(page, 'latin1.txt')
  await editor(page).waitFor()
  await type(page, '中')
  await page.keyboard.press('Control+s')
  await page.getByRole('alert').getByText(/The letter 中 cannot be written/).waitFor()
  expect(hex('latin1.txt')).toBe(bytesOf('caf\xe9\n').toString('hex'))
  await page.getByRole('button', { name: 'Windows 1252' }).click()
  await page.getByRole('menuitem', { name: 'Write in another encoding' }).click()
  await page.getByRole('combobox', { name: 'Write in another encoding' }).selectOption('utf-8')
  await page.getByRole('button', { name: /^Save/ }).click()
  await unsaved(page).waitFor({ state: 'detached' })
  expect(hex('latin1.txt')).toBe(Buffer.from('中café\n').toString('hex'))
})

test('FB-017 text is text wherever a letter lies', async () => {
  run(at, `mkdir -p fb17 && python3 -c '
for n in [*range(8188, 8194), *range(4092, 4098), *range(32764, 32770), *range(65532, 65538)]:
    open("fb17/%d.txt" % n, "wb").write(b"a" * n + "€€€\\n".encode())'`)
  const { page } = await signIn()
  for (const n of [8188, 8189, 8190, 8191, 8192, 8193, 4094, 4095, 32766, 32767, 65534, 65535]) {
    await files(page, `fb17/${n}.txt`)
    await editor(page).waitFor()
    await page.getByText('UTF-8', { exact: true }).waitFor()
    await editor(page).click()
    await page.keyboard.press('Control+End')
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('End')
    await page.getByText(`Ln 1, Col ${n + 4}`).waitFor()
  }
})

test('what is not saved outlives other tabs of the sandbox, a sign-out and a reload', async () => {
  run(at, 'echo old > draft.txt')
  const { page, complaints } = await signIn()
  await files(page, 'draft.txt')
  await editor(page).getByText('old').waitFor()
  await type(page, 'typed ')
  await page.getByRole('link', { name: 'History' }).last().click()
  await page.waitForURL('**/history')
  await page.getByRole('navigation', { name: 'Sandbox' }).getByRole('link', { name: 'Files' }).click()
  await page.getByRole('button', { name: 'draft.txt', exact: true }).click()
  await editor(page).getByText('typed old').waitFor()
  await page.evaluate(`fetch('/api/v1/auth/sign-out', { method: 'POST' })`)
  await page.keyboard.press('Control+s')
  await page.waitForURL('**/sign-in?next=*')
  await page.evaluate(`location.hash = ${JSON.stringify(new URL(link()).hash)}`)
  await page.waitForURL('**draft.txt**')
  await editor(page).getByText('typed old').waitFor()
  expect(run(at, 'cat draft.txt').trim()).toBe('old')
  await page.waitForTimeout(1000) // the draft is kept a moment after the last key
  await page.reload()
  await editor(page).getByText('typed old').waitFor()
  await page.getByText(/was not saved, and is here again/).waitFor()
  await page.getByRole('button', { name: /^Save/ }).click()
  await unsaved(page).waitFor({ state: 'detached' })
  expect(run(at, 'cat draft.txt').trim()).toBe('typed old')
  await page.getByRole('button', { name: 'Close draft.txt' }).click()
  await page.waitForURL('**path=%2Fworkspace')
  expect(complaints).toEqual([]) // the browser asked nothing
})

test('a tab with unsaved text asks before it is closed', async () => {
  run(at, 'echo old > asked.txt')
  const { page } = await signIn()
  await files(page, 'asked.txt')
  await editor(page).getByText('old').waitFor()
  await type(page, 'x')
  await page.getByRole('button', { name: 'Close asked.txt' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  await unsaved(page).waitFor()
  await page.getByRole('button', { name: 'Close asked.txt' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Close without saving' }).click()
  await unsaved(page).waitFor({ state: 'detached' })
  expect(run(at, 'cat asked.txt').trim()).toBe('old')
})

test('where two have written, both are seen and joined', async () => {
  run(at, `printf 'one\\ntwo\\nthree\\nfour\\n' > both.txt`)
  const { page, complaints } = await signIn()
  await files(page, 'both.txt')
  await editor(page).getByText('three').waitFor()
  await type(page, 'MINE ')
  run(at, `printf 'THEIRS one\\ntwo\\nthree\\nfour AGENT\\n' > both.txt`, { agent: 'other-agent' })
  await page.getByText(/other-agent saved both\.txt at/).waitFor()
  await page.keyboard.press('Control+s')
  const view = page.getByRole('region', { name: 'Mine, theirs and what becomes of them' })
  await view.getByText('In 1 place both changed the same lines.').waitFor()
  await view.locator('[data-column=mine]').getByText('MINE one').waitFor()
  await view.locator('[data-column=theirs]').getByText('THEIRS one').waitFor()
  await view.locator('[data-column=result]').getByText('four AGENT').waitFor()
  expect(await flaws(page)).toEqual([])
  expect(run(at, 'head -1 both.txt').trim()).toBe('THEIRS one')
  await view.getByRole('button', { name: 'Take both' }).click()
  await view.getByRole('button', { name: 'Save result' }).click()
  await unsaved(page).waitFor({ state: 'detached' })
  expect(run(at, 'cat both.txt')).toBe('MINE one\nTHEIRS one\ntwo\nthree\nfour AGENT\n')
  expect(complaints).toEqual([])
})

test('a file that others change is shown as it is, and one deleted beneath stays', async () => {
  run(at, 'echo before > live.txt')
  const { page } = await signIn()
  await files(page, 'live.txt')
  await editor(page).getByText('before').waitFor()
  run(at, 'echo after > live.txt; echo x > beside.txt')
  await editor(page).getByText('after').waitFor()
  await page.getByRole('treeitem', { name: 'beside.txt' }).waitFor()
  expect(await unsaved(page).count()).toBe(0)
  run(at, 'rm live.txt')
  await page.getByText('live.txt was deleted meanwhile. Its text is still here.').waitFor()
  await page.getByRole('button', { name: 'Save as new' }).click()
  await expect.poll(() => run(at, 'cat live.txt').trim()).toBe('after')
})

test('who changed a file is told, with diffs', async () => {
  run(at, 'echo made > who.txt', { agent: 'maker-agent' })
  const { page, complaints } = await signIn()
  await files(page, 'who.txt')
  await editor(page).getByText('made').waitFor()
  await type(page, 'edited ')
  await save(page)
  await page.keyboard.press('Alt+h')
  const pane = page.getByRole('complementary', { name: 'History of who.txt' })
  await pane.getByText('maker-agent').waitFor()
  await pane.getByRole('button', { name: /admin/ }).click()
  await page.waitForURL('**at=**')
  await page.getByRole('region', { name: 'Changes' }).getByText('edited made').waitFor()
  await page.reload()
  await page.getByRole('region', { name: 'Changes' }).getByText('edited made').waitFor()
  expect(await flaws(page)).toEqual([])
  await page.getByRole('button', { name: 'Side by side' }).click()
  await page.waitForURL('**view=side**')
  await page.getByRole('link', { name: 'Open operation' }).click()
  await page.waitForURL('**/history?op=**')
  expect(complaints).toEqual([])
})

test('a 2 GB file opens with its first part', async () => {
  run(at, 'truncate -s 2G sparse.bin; (yes "a line of text" | head -c 7000000; printf "the end") > big.txt; truncate -s 2G big2.txt; printf "first line\\n%s" "$(seq 1 300000)" | dd of=big2.txt conv=notrunc status=none')
  const { page, complaints } = await signIn()
  await files(page, 'big.txt')
  await page.getByText('A large file: the first 1.0 MB of 7.0 MB, for reading only.').waitFor()
  await page.getByRole('button', { name: 'Load more' }).click()
  await page.getByText(/the first 2\.1 MB of 7\.0 MB/).waitFor()
  await files(page, 'big2.txt')
  await page.getByText(/A large file: the first 1\.\d MB of 2\.1 GB/).waitFor()
  await editor(page).getByText('first line').waitFor()
  await files(page, 'sparse.bin')
  await page.getByRole('region', { name: 'Bytes' }).getByText('00000000').waitFor()
  await page.getByRole('textbox', { name: 'Go to 0x…' }).fill('0x7ffffff0')
  await page.keyboard.press('Enter')
  await page.getByText('7ffffff0').waitFor()
  expect(await page.evaluate('performance.memory ? performance.memory.usedJSHeapSize : 0')).toBeLessThan(200_000_000)
  expect(complaints).toEqual([])
})

test('links, files of the kernel, devices, pipes and bytes never break the page', async () => {
  run(at, 'mkdir -p l/d && cd l && echo in > d/f && ln -s d dir && ln -s d/f file && ln -s nowhere broken && ln -s . self && mkfifo pipe && head -c 300 /dev/urandom | tr "\\0-\\377" "\\0-\\377" > r.bin && printf "\\0\\1\\2" >> r.bin && ln -s /dev/zero zero')
  const { page, complaints } = await signIn()
  await files(page, 'l')
  await page.getByRole('treeitem', { name: 'dir → d' }).click()
  await page.waitForURL('**l%2Fdir')
  await page.getByRole('grid').getByText('f', { exact: true }).waitFor()
  await page.getByRole('treeitem', { name: 'file → d/f' }).click()
  await editor(page).getByText('in', { exact: true }).waitFor()
  await page.getByRole('treeitem', { name: 'broken' }).click()
  await page.getByRole('alert').getByText(/no such file/).first().waitFor()
  await page.getByRole('treeitem', { name: 'self' }).click()
  await page.getByRole('treeitem', { name: 'pipe' }).first().click()
  await page.getByText('This is no regular file (pipe), so it has no content to show.').waitFor()
  await page.getByRole('treeitem', { name: 'zero' }).first().click()
  await page.getByText(/no regular file/).waitFor()
  await page.getByRole('treeitem', { name: 'r.bin' }).first().click()
  await page.getByRole('region', { name: 'Bytes' }).getByText('00000000').waitFor()
  for (const path of ['/proc/version', '/proc/self/status', '/proc/cpuinfo']) {
    await page.goto(`${base}/sandboxes/local/${at.id}/files?path=${encodeURIComponent(path)}`)
    await editor(page).waitFor()
  }
  await page.goto(`${base}/sandboxes/local/${at.id}/files?path=${encodeURIComponent('/proc')}`)
  await page.getByRole('grid').getByText('cpuinfo').waitFor()
  await page.goto(`${base}/sandboxes/local/${at.id}/files?path=${encodeURIComponent('/proc/self/mem')}`)
  await page.getByRole('navigation', { name: 'Where this file is' }).waitFor()
  await page.goto(`${base}/sandboxes/local/${at.id}/files?path=${encodeURIComponent('/workspace/none')}`)
  await page.getByRole('alert').getByText(/no such file/).waitFor()
  expect(complaints).toEqual([])
})

test('images, Markdown and HTML are shown and do no harm', async () => {
  const image = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA2iEnWAAAAEUlEQVR4nGP8z4AATEhsPBwAM9EBBzDn4UwAAAAASUVORK5CYII=', 'base64')
  put('dot.png', image)
  run(at, `cat > note.md <<'EOT'
# A heading
Some *stress*, <script>window.harmed = 1</script><img src=x onerror="window.harmed=1"> [bad](javascript:window.harmed=1) [good](dot.png) [web](https://example.com/)

| a | b |
| - | - |
| 1 | 2 |

![the dot](dot.png)
EOT
cat > evil.svg <<'EOT'
<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10" onload="window.harmed=1"><script>window.harmed = 1</script><rect width="10" height="10"/></svg>
EOT`)
  const { page, complaints } = await signIn()
  await files(page, 'note.md', '&view=preview')
  await page.getByRole('heading', { name: 'A heading' }).waitFor()
  await page.getByText('<script>window.harmed = 1</script>').waitFor()
  await page.getByRole('img', { name: 'dot.png' }).waitFor()
  await page.getByRole('table').getByText('2').waitFor()
  expect(await page.locator('article a').count()).toBe(1)
  expect(await page.locator('article a').getAttribute('rel')).toContain('noopener')
  expect(await flaws(page)).toEqual([])
  await page.locator('article').getByRole('button', { name: 'good' }).click()
  await page.getByText('2 × 3').waitFor()
  await files(page, 'evil.svg', '&view=preview')
  await page.getByText('10 × 10').waitFor()
  expect(await page.evaluate('window.harmed')).toBeUndefined()
  expect(complaints).toEqual([])
})

test('50 000 entries stay smooth', async () => {
  run(at, 'mkdir -p many && cd many && seq -f "e%g.txt" 1 50000 | xargs touch')
  const { page, complaints } = await signIn({ viewport: { width: 1440, height: 900 } })
  page.context().setDefaultTimeout(60_000)
  await files(page, 'many')
  await page.getByText('50,000 entries').waitFor()
  await page.getByRole('tree').focus()
  await page.keyboard.press('ArrowDown')
  await page.getByRole('treeitem', { name: 'e2.txt' }).waitFor() // and e10 comes after e9
  const longest = await page.evaluate(`new Promise((done) => {
    const at = document.querySelector('[data-folder]')
    let longest = 0, last = performance.now(), frames = 0
    const step = (now) => {
      if (frames > 5) longest = Math.max(longest, now - last)
      last = now
      at.scrollTop += 3000
      if (++frames < 120) requestAnimationFrame(step)
      else done(longest)
    }
    requestAnimationFrame(step)
  })`)
  expect(Number(longest)).toBeLessThan(250)
  expect(await page.getByRole('row').count()).toBeLessThan(120)
  expect(complaints).toEqual([])
}, 120_000)

test('a paused sandbox and a viewer are told, and drafts stay', async () => {
  run(at, 'echo x > paused.txt')
  const { page } = await signIn()
  await files(page, 'paused.txt')
  await editor(page).getByText('x', { exact: true }).waitFor()
  await type(page, 'kept ')
  await page.getByRole('button', { name: 'Pause', exact: true }).click()
  await page.getByText('Paused. Nothing in it runs').waitFor()
  expect(await page.getByRole('button', { name: /^Save/ }).isDisabled()).toBe(true)
  await editor(page).getByText('kept x').waitFor()
  await page.getByRole('button', { name: 'Resume' }).first().click()
  await page.getByText('Paused. Nothing in it runs').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: /^Save/ }).click()
  await unsaved(page).waitFor({ state: 'detached' })
  expect(createHash('sha256').update(run(at, 'cat paused.txt')).digest('hex')).toBe(createHash('sha256').update('kept x\n').digest('hex'))
})

test('on a phone, in Chinese and in the dark', async () => {
  run(at, 'mkdir -p 目录 && echo 内容 > 目录/文件.txt')
  const { page, complaints } = await signIn({ viewport: { width: 390, height: 844 }, locale: 'zh-CN', colorScheme: 'dark' })
  await files(page, '目录/文件.txt')
  await editor(page).getByText('内容').waitFor()
  await page.getByRole('button', { name: '文件', exact: true }).click()
  await page.getByRole('treeitem', { name: '目录' }).waitFor()
  expect(await flaws(page)).toEqual([])
  await page.getByRole('dialog').getByRole('button', { name: '关闭' }).last().click()
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390)
  expect(await flaws(page)).toEqual([])
  expect(complaints).toEqual([])
})
