import { expect, test } from 'vitest'
import { above, base, isName, join, last, moved, nameOf, natural, param, parent, path, within, wrongName } from '@/features/files/names'

const raw = (text: string) => `base64:${btoa(text)}` // a name that is no UTF-8

test('names are walked, also those that are no UTF-8', () => {
  expect(parent('/a/b')).toBe('/a')
  expect(parent('/a')).toBe('/')
  expect(parent('/')).toBe('/')
  expect(parent(raw('/a/\xff'))).toBe('/a')
  expect(parent(raw('/\xff/b'))).toBe(raw('/\xff'))
  expect(join('/', 'a')).toBe('/a')
  expect(join('/a', 'ж')).toBe('/a/ж')
  expect(join(raw('/\xff'), 'b')).toBe(raw('/\xff/b'))
  expect(join('/a', last(raw('/x/\xfe')))).toBe(raw('/a/\xfe'))
  expect(base(raw('/a/b\xff'))).toBe('b\ufffd')
  expect(path('/a b')).toBe('/a b')
  expect(above('/w/a/b', '/w')).toEqual(['/w', '/w/a'])
  expect(above('/a/b')).toEqual(['/', '/a'])
})

test('a name is within a directory by whole parts', () => {
  expect(within('/a/b', '/a')).toBe(true)
  expect(within('/ab', '/a')).toBe(false)
  expect(within('/a', '/a')).toBe(true)
  expect(within('/x', '/')).toBe(true)
  expect(within(raw('/a/\xff'), '/a')).toBe(true)
  expect(moved('/a/b/c', '/a', '/z')).toBe('/z/b/c')
  expect(moved('/ab', '/a', '/z')).toBe('/ab')
})

test('the server is asked by path, or by its bytes', () => {
  expect(param('/a')).toEqual({ path: '/a' })
  expect(param(raw('/\xff'))).toEqual({ path_base64: btoa('/\xff') })
  expect(nameOf({ path: '/\ufffd', path_base64: btoa('/\xff') })).toBe(raw('/\xff'))
})

test('an address names a file, or is no name', () => {
  for (const good of ['/', '/a', raw('/\xff')]) expect(isName(good)).toBe(true)
  for (const bad of ['', 'a', 'base64:!', 'base64:YQ==', 7, undefined]) expect(isName(bad)).toBe(false)
})

test('names are sorted as people count, and wrong ones are told', () => {
  expect(['f10', 'f2', 'F1', 'f1'].sort(natural)).toEqual(['F1', 'f1', 'f2', 'f10'])
  expect([wrongName(''), wrongName('a/b'), wrongName('..'), wrongName('ж'.repeat(128)), wrongName('a.b')]).toEqual(['empty', 'slash', 'dots', 'long', undefined])
})
