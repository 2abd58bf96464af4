import { useEffect, useEffectEvent, useRef } from 'react'
import type { Doc, Desk } from '@/features/files/desk'
import { editor, KeyCode, KeyMod, Range } from '@/features/files/monaco'
import { diffLines } from '@/lib/lines'
import { useWords } from '@/lib/words'

export const options: editor.IStandaloneEditorConstructionOptions = {
  automaticLayout: true, fontSize: 12.5, lineHeight: 20, fontFamily: 'ui-monospace, "SF Mono", "JetBrains Mono", "Cascadia Code", Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace', fontLigatures: false,
  minimap: { enabled: false }, bracketPairColorization: { enabled: false }, scrollBeyondLastLine: false, padding: { top: 8, bottom: 8 }, lineNumbersMinChars: 4, glyphMargin: false, folding: true, renderLineHighlight: 'line', overviewRulerLanes: 2, renderFinalNewline: 'on', hideCursorInOverviewRuler: true, smoothScrolling: false, renderWhitespace: 'selection',
  // What is typed is what is written: nothing is completed, closed or corrected.
  quickSuggestions: false, wordBasedSuggestions: 'off', suggestOnTriggerCharacters: false, autoClosingBrackets: 'never', autoClosingQuotes: 'never', autoSurround: 'never', acceptSuggestionOnEnter: 'off', parameterHints: { enabled: false }, unusualLineTerminators: 'off', trimAutoWhitespace: false, detectIndentation: true,
  largeFileOptimizations: true, maxTokenizationLineLength: 20_000, stopRenderingLineAfter: 20_000, links: false, contextmenu: true, fixedOverflowWidgets: true, dragAndDrop: false, dropIntoEditor: { enabled: false }, accessibilitySupport: 'auto', unicodeHighlight: { nonBasicASCII: false, ambiguousCharacters: false, invisibleCharacters: true },
}

const widestMarked = 1_000_000 // letters in which changed lines are looked for

type Props = { desk: Desk; doc: Doc; readOnly?: boolean; go?: { line: number; column: number }; onSave: () => void; onPosition: (line: number, column: number) => void }

// Editor shows one file at a time; each keeps its place and what can be undone.
export function Editor({ desk, doc, readOnly, go, onSave, onPosition }: Props) {
  const w = useWords()
  const ref = useRef<HTMLDivElement>(null)
  const at = useRef<editor.IStandaloneCodeEditor>(null)
  const save = useEffectEvent(onSave)
  const tell = useEffectEvent(onPosition)
  useEffect(() => {
    if (!ref.current) return
    const made = editor.create(ref.current, { ...options, model: null })
    at.current = made
    made.addCommand(KeyMod.CtrlCmd | KeyCode.KeyS, () => save())
    const watch = made.onDidChangeCursorPosition(({ position }) => tell(position.lineNumber, position.column))
    return () => {
      watch.dispose()
      made.dispose()
      at.current = null
    }
  }, [])
  const { model, name } = doc
  useEffect(() => {
    const made = at.current
    if (!made || !model) return
    made.setModel(model)
    const view = desk.view(name)
    if (view) made.restoreViewState(view)
    const position = made.getPosition()
    if (position) tell(position.lineNumber, position.column)
    return () => {
      if (!model.isDisposed()) desk.setView(name, made.saveViewState())
    }
  }, [desk, model, name])
  useEffect(() => at.current?.updateOptions({ readOnly, ariaLabel: w.files.editor }), [readOnly, w])
  useEffect(() => {
    if (!go || !at.current) return
    at.current.setPosition({ lineNumber: go.line, column: go.column })
    at.current.revealLineInCenter(go.line)
    at.current.focus()
  }, [go])
  useMarks(at, doc)
  return <div ref={ref} className="min-h-0 flex-1" data-editor />
}

// useMarks shows at the edge which lines differ from what is saved.
function useMarks(at: React.RefObject<editor.IStandaloneCodeEditor | null>, { model, base, dirty }: Doc) {
  useEffect(() => {
    const made = at.current
    if (!made || !model || model.getValueLength() > widestMarked) return
    const marks = made.createDecorationsCollection()
    let timer: ReturnType<typeof setTimeout> | undefined
    const draw = () => {
      if (model.isDisposed()) return
      const lines = model.getLinesContent()
      marks.set(!dirty ? [] : diffLines(base.split('\n'), lines).map(({ to, end }) => ({
        range: new Range(Math.max(1, to + 1), 1, Math.max(1, end), 1), options: { isWholeLine: true, linesDecorationsClassName: end > to ? 'files-changed' : 'files-removed', overviewRuler: { color: '#2f7fb8', position: 1 } },
      })))
    }
    draw()
    const watch = model.onDidChangeContent(() => {
      clearTimeout(timer)
      timer = setTimeout(draw, 250)
    })
    return () => {
      watch.dispose()
      clearTimeout(timer)
      marks.clear()
    }
  }, [at, model, base, dirty])
}
