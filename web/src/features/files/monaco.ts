// The editor, bundled with the page and loaded when the first text is opened.
// Of languages it knows the grammars; it runs no service of a language.
import { editor, KeyCode, KeyMod, languages, Range } from 'monaco-editor/editor/editor.api.js'
import 'monaco-editor/features/register.all.js'
import 'monaco-editor/languages/definitions/register.all.js'
import EditorWorker from 'monaco-editor/editor/editor.worker.js?worker'

declare global {
  interface Window { MonacoEnvironment?: { getWorker: () => Worker } }
}
self.MonacoEnvironment = { getWorker: () => new EditorWorker() }

languages.register({ id: 'json', extensions: ['.json', '.jsonc', '.jsonl', '.ipynb', '.webmanifest'], aliases: ['JSON'] })
languages.setLanguageConfiguration('json', { brackets: [['{', '}'], ['[', ']']], comments: { lineComment: '//', blockComment: ['/*', '*/'] } })
languages.setMonarchTokensProvider('json', {
  tokenizer: {
    root: [
      [/"(?:[^"\\]|\\.)*"(?=\s*:)/, 'type'], [/"(?:[^"\\]|\\.)*"?/, 'string'], [/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/, 'number'], [/\b(?:true|false|null)\b/, 'keyword'], [/\/\/.*$/, 'comment'], [/[{}[\]]/, '@brackets'],
    ],
  },
})

type Colours = { background: string; foreground: string; line: string; number: string; selection: string; key: string; string: string; digit: string; fn: string; comment: string; popover: string; border: string; brand: string; add: string; del: string }
const light: Colours = { background: '#ffffff', foreground: '#15181c', line: '#f4f6f8', number: '#636c77', selection: '#cfe3ea', key: '#86358f', string: '#1c7443', digit: '#9a4a00', fn: '#1f5fae', comment: '#636c77', popover: '#ffffff', border: '#e3e7eb', brand: '#0a687c', add: '#e9f6ee', del: '#fcedee' }
const dark: Colours = { background: '#0f1114', foreground: '#e6e9ed', line: '#171a1f', number: '#87919d', selection: '#1d4650', key: '#d59be6', string: '#6fcb98', digit: '#e0b25c', fn: '#7fb2f0', comment: '#87919d', popover: '#1a1e23', border: '#23282e', brand: '#62c3d8', add: '#12241b', del: '#2b171a' }

function define(name: string, base: 'vs' | 'vs-dark', c: Colours) {
  const rule = (token: string, colour: string) => ({ token, foreground: colour.slice(1) })
  editor.defineTheme(name, {
    base, inherit: false,
    rules: [
      rule('', c.foreground), rule('keyword', c.key), rule('tag', c.key), rule('string', c.string), rule('string.escape', c.digit), rule('regexp', c.string), rule('number', c.digit), rule('constant', c.digit), rule('comment', c.comment), rule('type', c.fn), rule('annotation', c.fn), rule('attribute.name', c.fn), rule('attribute.value', c.string),
      rule('metatag', c.key), rule('predefined', c.fn), rule('variable.predefined', c.fn), rule('invalid', c.foreground), rule('strong', c.foreground), rule('emphasis', c.foreground),
    ],
    colors: {
      'editor.background': c.background, 'editor.foreground': c.foreground, 'editor.lineHighlightBackground': c.line, 'editor.lineHighlightBorder': '#00000000', 'editorLineNumber.foreground': c.number, 'editorLineNumber.activeForeground': c.foreground, 'editor.selectionBackground': c.selection, 'editor.inactiveSelectionBackground': c.selection,
      'editorCursor.foreground': c.foreground, 'editorWidget.background': c.popover, 'editorWidget.border': c.border, 'input.background': c.background, 'input.border': c.number, focusBorder: c.brand, 'scrollbarSlider.background': `${c.number}55`, 'scrollbarSlider.hoverBackground': `${c.number}88`, 'scrollbarSlider.activeBackground': `${c.number}aa`, 'scrollbar.shadow': '#00000000',
      'editorGutter.background': c.background, 'editorOverviewRuler.border': '#00000000', 'diffEditor.insertedLineBackground': c.add, 'diffEditor.removedLineBackground': c.del, 'diffEditor.insertedTextBackground': `${c.string}33`, 'diffEditor.removedTextBackground': '#bd263833', 'editorUnicodeHighlight.border': '#e8590c',
      'menu.background': c.popover, 'menu.foreground': c.foreground, 'editorIndentGuide.background1': c.border, 'editorIndentGuide.activeBackground1': c.number, 'editorStickyScroll.background': c.background, 'editorBracketMatch.border': c.number, 'editorBracketMatch.background': '#00000000',
    },
  })
}
define('glassbox-light', 'vs', light)
define('glassbox-dark', 'vs-dark', dark)

function followTheme() {
  editor.setTheme(document.documentElement.dataset.theme === 'dark' ? 'glassbox-dark' : 'glassbox-light')
}
new MutationObserver(followTheme).observe(document.documentElement, { attributeFilter: ['data-theme'] })
followTheme()

// languageOf tells the language by a file's name, else by its first line.
export function languageOf(name: string, text: string): string {
  const low = name.toLowerCase()
  let found = ''
  let length = 0
  for (const one of languages.getLanguages()) {
    if (one.filenames?.some((file) => file.toLowerCase() === low)) return one.id
    for (const end of one.extensions ?? []) if (low.endsWith(end) && end.length > length) [found, length] = [one.id, end.length]
  }
  if (found) return found
  const first = text.slice(0, 200).split('\n', 1)[0] ?? ''
  return languages.getLanguages().find((one) => one.firstLine && first.startsWith('#!') && new RegExp(one.firstLine).test(first))?.id ?? 'plaintext'
}

export const languageName = (id: string) => languages.getLanguages().find((one) => one.id === id && one.aliases)?.aliases?.[0] ?? ''

export { editor, KeyCode, KeyMod, Range }
