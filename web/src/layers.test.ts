import { readFileSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'

const layers = ['gen', 'catalogue', 'lib', 'components', 'features', 'routes']
const root = import.meta.dirname

// Imports point down, and no feature imports another.
test('layers', () => {
  const wrong: string[] = []
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!/\.tsx?$/.test(entry.name)) continue
    const file = relative(root, join(entry.parentPath, entry.name))
    const [layer = '', feature = ''] = file.split('/')
    if (!layers.includes(layer)) continue
    for (const found of readFileSync(join(root, file), 'utf8').matchAll(/from '@\/([^']+)'/g)) {
      const [to = '', other = ''] = (found[1] ?? '').split('/')
      const kinds = layer === 'catalogue' || (layer === 'lib' && to === 'catalogue')
      if (!kinds && layers.indexOf(to) > layers.indexOf(layer)) wrong.push(`${file} imports ${found[1]}`)
      if (layer === 'features' && to === 'features' && other !== feature) wrong.push(`${file} imports ${found[1]}`)
    }
  }
  expect(wrong).toEqual([])
})

test('both languages have the same words', async () => {
  const { en } = await import('@/catalogue/en')
  const { zh } = await import('@/catalogue/zh')
  const names = (of: object, at = ''): string[] => Object.entries(of).flatMap(([name, value]) => (typeof value === 'object' && value !== null ? names(value, `${at}${name}.`) : [`${at}${name} ${typeof value}`]))
  expect(names(zh).sort()).toEqual(names(en).sort())
})
