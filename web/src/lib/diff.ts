// A unified diff, as lines that can be shown.
export type DiffLine = { kind: 'add' | 'del' | 'same' | 'hunk' | 'note'; text: string; old?: number; new?: number }

export function readDiff(diff: string): DiffLine[] {
  const out: DiffLine[] = []
  let before = 0
  let after = 0
  let inside = false
  for (const text of diff.replace(/\n$/, '').split('\n')) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(text)
    if (hunk) {
      before = Number(hunk[1])
      after = Number(hunk[2])
      inside = true
      out.push({ kind: 'hunk', text })
    } else if (!inside) continue // the names of the files
    else if (text.startsWith('+')) out.push({ kind: 'add', text: text.slice(1), new: after++ })
    else if (text.startsWith('-')) out.push({ kind: 'del', text: text.slice(1), old: before++ })
    else if (text.startsWith('\\')) out.push({ kind: 'note', text })
    else out.push({ kind: 'same', text: text.slice(1), old: before++, new: after++ })
  }
  return out
}

export type Pair = { left?: DiffLine; right?: DiffLine }

// sideBySide pairs what was removed with what came in its place.
export function sideBySide(list: DiffLine[]): Pair[] {
  const out: Pair[] = []
  for (let i = 0; i < list.length; ) {
    const run = (kind: DiffLine['kind'], from: number) => {
      let to = from
      while (list[to]?.kind === kind) to++
      return list.slice(from, to)
    }
    const gone = run('del', i)
    const come = run('add', i + gone.length)
    for (let k = 0; k < Math.max(gone.length, come.length); k++) out.push({ left: gone[k], right: come[k] })
    i += gone.length + come.length
    const one = list[i]
    if (gone.length + come.length === 0 && one) {
      out.push({ left: one, right: one })
      i++
    }
  }
  return out
}

export function countDiff(diff: string): { added: number; removed: number } {
  let added = 0
  let removed = 0
  for (const one of readDiff(diff)) {
    if (one.kind === 'add') added++
    else if (one.kind === 'del') removed++
  }
  return { added, removed }
}
