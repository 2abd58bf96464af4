// The desk holds the files of a sandbox that are open, with what was typed in
// them. It lives as long as the page, so leaving the tab loses nothing.
import { useSyncExternalStore } from 'react'
import type { editor } from 'monaco-editor/editor/editor.api.js'
import { type Entry, isCode, readPart, readWhole, write } from '@/features/files/contents'
import { type Draft, draftKeys, dropDraft, findDraft, keepDraft } from '@/features/files/drafts'
import { type Name, base, moved, within } from '@/features/files/names'
import { type Kind, type Opened, openFile, pieceSize } from '@/features/files/opening'
import { Ends, type Form, type Text, decode, encode } from '@/features/files/text'
import type { Place } from '@/lib/api'

const keepAfter = 400 // ms

// Theirs is what another has written meanwhile.
export type Theirs = { hash: string; text?: Text; bytes?: Uint8Array }

// A Doc is an open file. It never changes: the desk puts another in its place.
export type Doc = {
  name: Name
  state: 'opening' | 'ready' | 'failed'
  error?: unknown
  kind?: Kind
  entry?: Entry
  size?: number
  hash: string | null // of what is edited; null: there is no such file
  base: string // the text as it was read
  asRead?: Form
  form?: Form
  model?: editor.ITextModel
  bytes?: Uint8Array // of an image, or as much of a large file as is shown
  dirty: boolean
  saving: boolean
  problem?: unknown // of the last save
  draft?: number // when what is shown was typed, if it comes from an earlier page
  theirs?: Theirs
  gone?: boolean // deleted meanwhile
  written?: string // the operation of our last save
}

const blank = (name: Name): Doc => ({ name, state: 'opening', hash: null, base: '', dirty: false, saving: false })
const sameForm = (a?: Form, b?: Form) => a?.encoding === b?.encoding && a?.bom === b?.bom && a?.breaks === b?.breaks

type Inside = { ends?: Ends; saved: number; timer?: ReturnType<typeof setTimeout>; abort: AbortController; view?: editor.ICodeEditorViewState | null }

export class Desk {
  readonly at: Place
  private readonly user: string
  private docs: readonly Doc[] = []
  private readonly insides = new Map<Name, Inside>()
  private readonly listeners = new Set<() => void>()
  private readonly unkept = new Set<Name>() // typed, and not yet kept as drafts

  constructor(at: Place, user: string) {
    this.at = at
    this.user = user
    addEventListener('beforeunload', (event) => {
      if (this.docs.some((doc) => doc.dirty && this.unkept.has(doc.name))) event.preventDefault()
    })
    addEventListener('visibilitychange', () => {
      for (const name of this.unkept) void this.keep(name)
    })
    void this.restore()
  }

  subscribe = (changed: () => void) => {
    this.listeners.add(changed)
    return () => this.listeners.delete(changed)
  }
  list = () => this.docs
  find = (name: Name | undefined) => this.docs.find((one) => one.name === name)
  view = (name: Name) => this.insides.get(name)?.view
  setView(name: Name, view: editor.ICodeEditorViewState | null) {
    const inside = this.insides.get(name)
    if (inside) inside.view = view
  }

  private put(name: Name, change: Partial<Doc>) {
    this.docs = this.docs.map((one) => (one.name === name ? { ...one, ...change } : one))
    this.tell()
  }

  private tell() {
    try {
      sessionStorage.setItem(this.tabsKey(), JSON.stringify(this.docs.map((one) => one.name)))
    } catch { /* then tabs last as long as the page */ }
    for (const changed of this.listeners) changed()
  }

  private tabsKey = () => `glassbox.files ${this.user} ${this.at.connection}/${this.at.sandbox}`
  private draftKey = (name: Name) => `${this.user} ${this.at.connection}/${this.at.sandbox} ${name}`

  // restore opens what was open before a reload, and what was not saved.
  private async restore() {
    const prefix = this.draftKey('')
    const names = new Set<Name>()
    try {
      const told: unknown = JSON.parse(sessionStorage.getItem(this.tabsKey()) ?? '[]')
      if (Array.isArray(told)) for (const one of told) if (typeof one === 'string') names.add(one)
    } catch { /* none */ }
    for (const key of await draftKeys(prefix)) names.add(key.slice(prefix.length))
    for (const name of names) this.open(name)
  }

  open(name: Name) {
    if (this.find(name)) return
    this.docs = [...this.docs, blank(name)]
    this.insides.set(name, { saved: 0, abort: new AbortController() })
    this.tell()
    void this.load(name)
  }

  retry(name: Name) {
    this.put(name, { state: 'opening', error: undefined })
    void this.load(name)
  }

  close(name: Name, keepDrafts = false) {
    const doc = this.find(name)
    const inside = this.insides.get(name)
    if (!doc || !inside) return
    inside.abort.abort()
    clearTimeout(inside.timer)
    this.insides.delete(name)
    this.unkept.delete(name)
    this.docs = this.docs.filter((one) => one !== doc)
    this.tell()
    doc.model?.dispose()
    if (!keepDrafts) void dropDraft(this.draftKey(name)).catch(() => {})
  }

  private async load(name: Name) {
    const signal = this.insides.get(name)?.abort.signal
    try {
      const [draft, opened] = await Promise.all([findDraft(this.draftKey(name)), openFile(this.at, name, signal)])
      if (!signal?.aborted) await this.show(name, opened, draft)
    } catch (error) {
      const draft = isCode(error, 'file_not_found') ? await findDraft(this.draftKey(name)) : undefined
      if (signal?.aborted) return
      if (draft) await this.showDraft(name, draft, { gone: true })
      else this.put(name, { state: 'failed', error })
    }
  }

  private async show(name: Name, opened: Opened, draft: Draft | undefined) {
    const known = { state: 'ready' as const, kind: opened.kind, entry: opened.entry, size: 'size' in opened ? opened.size : undefined }
    if (opened.kind === 'text') {
      if (draft && draft.text !== opened.text.text) return this.showDraft(name, draft, { ...known, theirs: draft.hash === opened.hash ? undefined : { hash: opened.hash, text: opened.text } })
      if (draft) void dropDraft(draft.key).catch(() => {})
      const model = await this.model(name, opened.text)
      return this.put(name, { ...known, model, hash: opened.hash, base: opened.text.text, form: opened.text.form, asRead: opened.text.form })
    }
    if (opened.kind === 'large') {
      return this.put(name, { ...known, model: await newModel(name, opened.text.text), bytes: opened.bytes, form: opened.text.form })
    }
    this.put(name, { ...known, bytes: opened.kind === 'image' ? opened.bytes : undefined, error: opened.kind === 'special' ? opened.error : undefined })
  }

  // showDraft shows what was typed before this page was opened.
  private async showDraft(name: Name, draft: Draft, known: Partial<Doc>) {
    const model = await this.model(name, { text: draft.base, form: draft.form, ends: draft.baseEnds })
    model.pushEditOperations([], [{ range: model.getFullModelRange(), text: draft.text }], () => null)
    const inside = this.insides.get(name)
    if (inside?.ends) inside.ends.list = draft.ends
    this.put(name, { kind: 'text', ...known, state: 'ready', model, base: draft.base, form: draft.form, asRead: draft.asRead, hash: draft.hash, draft: draft.at, dirty: true })
  }

  private async model(name: Name, text: Text): Promise<editor.ITextModel> {
    const model = await newModel(name, text.text)
    this.begin(name, model, text)
    model.onDidChangeContent((event) => this.typed(name, model, event))
    return model
  }

  // begin takes what a model holds as what is saved.
  private begin(name: Name, model: editor.ITextModel, text: Text) {
    const inside = this.insides.get(name)
    if (!inside) return
    inside.saved = model.getAlternativeVersionId()
    inside.ends = text.form.breaks === 'mixed' ? new Ends(text.ends, inside.saved) : undefined
  }

  private typed(name: Name, model: editor.ITextModel, event: editor.IModelContentChangedEvent) {
    const inside = this.insides.get(name)
    const doc = this.find(name)
    if (!inside) return
    inside.ends?.edited(event.changes, model.getAlternativeVersionId())
    if (doc?.model !== model) return
    this.weigh(name)
    this.later(name)
  }

  // weigh finds out whether a file differs from what was saved.
  private weigh(name: Name, change: Partial<Doc> = {}) {
    const doc = this.find(name)
    const inside = this.insides.get(name)
    if (!doc?.model || !inside) return
    const next = { ...doc, ...change }
    const dirty = Boolean(next.gone) || doc.model.getAlternativeVersionId() !== inside.saved || !sameForm(next.form, next.asRead)
    if (dirty !== doc.dirty || Object.keys(change).length > 0) this.put(name, { ...change, dirty, draft: dirty ? doc.draft : undefined })
  }

  private later(name: Name) {
    const inside = this.insides.get(name)
    if (!inside) return
    this.unkept.add(name)
    clearTimeout(inside.timer)
    inside.timer = setTimeout(() => void this.keep(name), keepAfter)
  }

  private async keep(name: Name) {
    const doc = this.find(name)
    if (!doc?.model || !doc.form || !doc.asRead) return
    const { model, form, asRead, hash, base } = doc
    const ends = this.insides.get(name)?.ends
    const version = model.getVersionId()
    const key = this.draftKey(name)
    try {
      await (doc.dirty ? keepDraft({ key, text: textOf(model), base, hash, form, asRead, ends: ends?.list ?? [], baseEnds: ends?.first ?? [], at: Date.now() }) : dropDraft(key))
      if (model.isDisposed() || model.getVersionId() === version) this.unkept.delete(name)
    } catch { /* this browser keeps nothing: leaving the page is asked about */ }
  }

  setForm(name: Name, change: Partial<Form>) {
    const form = this.find(name)?.form
    if (!form) return
    this.weigh(name, { form: { ...form, ...change }, problem: undefined })
    this.later(name)
  }

  // reread reads a file that has no changes of ours in another encoding.
  async reread(name: Name, encoding?: string) {
    const doc = this.find(name)
    if (!doc?.model) return
    const { bytes, hash } = await readWhole(this.at, name, this.insides.get(name)?.abort.signal)
    const text = decode(bytes, encoding)
    if (text) this.take(name, text, hash, bytes.length)
    return Boolean(text)
  }

  // take shows text that lies in the file, and can be undone.
  take(name: Name, text: Text, hash: string, size?: number) {
    const { model } = this.find(name) ?? {}
    if (!model) return
    if (model.getValue(undefined, true) !== text.text) model.pushEditOperations([], [{ range: model.getFullModelRange(), text: text.text }], () => null)
    this.begin(name, model, text)
    this.put(name, { hash, base: text.text, form: text.form, asRead: text.form, size, dirty: false, theirs: undefined, gone: false, problem: undefined, draft: undefined })
    this.later(name)
  }

  // save writes a file, if nobody else has written it meanwhile. Over that is
  // what somebody decided who has seen theirs.
  async save(name: Name, over?: { hash: string | null }): Promise<boolean> {
    const doc = this.find(name)
    if (!doc?.model || !doc.form || doc.saving || (!doc.dirty && !over)) return false
    const { model, form } = doc
    const inside = this.insides.get(name)
    const version = model.getAlternativeVersionId()
    const text = textOf(model)
    this.put(name, { saving: true, problem: undefined })
    try {
      const bytes = encode(text, form, inside?.ends?.list)
      const written = await write(this.at, name, bytes, over ? over.hash : doc.gone ? null : doc.hash)
      if (inside) {
        inside.saved = version
        inside.ends = inside.ends && new Ends(inside.ends.at(version), version, inside.ends)
      }
      this.put(name, { saving: false, entry: written, hash: written.sha256, written: written.operation_id, base: text, asRead: form, size: bytes.length, theirs: undefined, gone: false })
      this.weigh(name, { saving: false })
      this.later(name)
      return true
    } catch (error) {
      this.put(name, { saving: false, problem: isCode(error, 'concurrent_modification') ? undefined : error })
      if (isCode(error, 'concurrent_modification')) await this.meet(name)
      return false
    }
  }

  // meet finds out what another has written.
  async meet(name: Name) {
    const doc = this.find(name)
    try {
      const { bytes, hash } = await readWhole(this.at, name, this.insides.get(name)?.abort.signal)
      if (hash === doc?.hash) return this.put(name, { gone: false })
      const text = decode(bytes)
      if (doc && !doc.dirty && text && !doc.theirs) return this.take(name, text, hash, bytes.length)
      this.put(name, { theirs: { hash, text, bytes }, gone: false })
    } catch (error) {
      if (isCode(error, 'file_not_found')) this.weigh(name, { gone: true, theirs: undefined })
      else this.put(name, { problem: error })
    }
  }

  // resolve writes what somebody made of mine and theirs.
  async resolve(name: Name, text: string): Promise<boolean> {
    const doc = this.find(name)
    if (!doc?.model || !doc.theirs) return false
    if (textOf(doc.model) !== text) doc.model.pushEditOperations([], [{ range: doc.model.getFullModelRange(), text }], () => null)
    return this.save(name, { hash: doc.theirs.hash })
  }

  // takeTheirs drops what was typed here.
  takeTheirs(name: Name) {
    const doc = this.find(name)
    if (!doc?.theirs) return
    if (doc.theirs.text) this.take(name, doc.theirs.text, doc.theirs.hash)
    else {
      this.close(name)
      this.open(name)
    }
  }

  // changed is told of names that were changed by others.
  changed(touches: (name: Name) => boolean) {
    for (const doc of this.docs) {
      if (!touches(doc.name) || doc.state === 'opening' || doc.saving) continue
      if (doc.kind === 'text') void this.meet(doc.name)
      else if (doc.kind === 'image' || doc.state === 'failed') this.retry(doc.name)
    }
  }

  // renamed follows files that were given another name. What was typed comes along.
  renamed(from: Name, to: Name) {
    for (const doc of this.docs) {
      if (!within(doc.name, from)) continue
      const name = moved(doc.name, from, to)
      const inside = this.insides.get(doc.name)
      if (!inside || this.find(name)) continue
      void dropDraft(this.draftKey(doc.name)).catch(() => {})
      this.insides.delete(doc.name)
      this.unkept.delete(doc.name)
      clearTimeout(inside.timer)
      this.insides.set(name, inside)
      this.docs = this.docs.map((one) => (one === doc ? { ...doc, name, model: undefined } : one))
      if (doc.model) void this.rename(name, doc)
    }
    this.tell()
  }

  private async rename(name: Name, doc: Doc) {
    const { model: old } = doc
    if (!old) return
    const model = await this.model(name, { text: doc.base, form: doc.asRead ?? { encoding: 'utf-8', bom: false, breaks: '\n' }, ends: this.insides.get(name)?.ends?.first ?? [] })
    if (doc.dirty) model.pushEditOperations([], [{ range: model.getFullModelRange(), text: textOf(old) }], () => null)
    old.dispose()
    this.put(name, { model })
    this.weigh(name, { model })
    if (doc.dirty) this.later(name)
  }

  // more shows the next piece of a large file.
  async more(name: Name) {
    const doc = this.find(name)
    if (!doc?.model || !doc.bytes || !doc.form) return
    const next = await readPart(this.at, name, doc.bytes.length, pieceSize, this.insides.get(name)?.abort.signal)
    const bytes = new Uint8Array(doc.bytes.length + next.bytes.length)
    bytes.set(doc.bytes)
    bytes.set(next.bytes, doc.bytes.length)
    const text = decode(bytes, doc.form.encoding, true)
    const end = doc.model.getFullModelRange().getEndPosition()
    const at = { startLineNumber: end.lineNumber, startColumn: end.column, endLineNumber: end.lineNumber, endColumn: end.column }
    if (text) doc.model.applyEdits([{ range: at, text: text.text.slice(doc.model.getValueLength()) }])
    this.put(name, { bytes, size: next.size ?? doc.size })
  }
}

async function newModel(name: Name, text: string): Promise<editor.ITextModel> {
  const { editor, languageOf } = await import('@/features/files/monaco')
  const model = editor.createModel(text, languageOf(base(name), text))
  model.setEOL(editor.EndOfLineSequence.LF)
  return model
}

// textOf is what a model holds, with \n at the ends of lines.
export const textOf = (model: editor.ITextModel) => model.getValue(1, true)

const desks = new Map<string, Desk>()

export function deskOf(at: Place, user: string): Desk {
  const key = `${user} ${at.connection}/${at.sandbox}`
  const desk = desks.get(key) ?? new Desk(at, user)
  desks.set(key, desk)
  return desk
}

export const useDocs = (desk: Desk): readonly Doc[] => useSyncExternalStore(desk.subscribe, desk.list)
