// Which lines of two texts differ, and how two changes of one text are joined.

// A Hunk says that lines from..until of the old text became to..end of the new.
export type Hunk = { from: number; until: number; to: number; end: number }

const patience = 4000 // edits after which the rest counts as changed

// diffLines compares by Myers' algorithm, and gives up where little is alike.
export function diffLines(a: readonly string[], b: readonly string[]): Hunk[] {
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let endA = a.length
  let endB = b.length
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA--
    endB--
  }
  return myers(a.slice(start, endA), b.slice(start, endB)).map((one) => ({ from: one.from + start, until: one.until + start, to: one.to + start, end: one.end + start }))
}

function myers(a: readonly string[], b: readonly string[]): Hunk[] {
  if (a.length === 0 && b.length === 0) return []
  const whole = [{ from: 0, until: a.length, to: 0, end: b.length }]
  if (a.length === 0 || b.length === 0) return whole
  const trail: Map<number, number>[] = []
  const best = new Map<number, number>([[1, 0]])
  const far = (k: number) => best.get(k) ?? -1
  for (let d = 0; d <= Math.min(a.length + b.length, patience); d++) {
    trail.push(new Map(best))
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && far(k - 1) < far(k + 1)) ? far(k + 1) : far(k - 1) + 1
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++
      best.set(k, x)
      if (x >= a.length && x - k >= b.length) return hunks(trail, a.length, b.length)
    }
    if (d * trail.length > 4_000_000) break
  }
  return whole
}

// hunks walks the trail back, and joins what lies together.
function hunks(trail: Map<number, number>[], x: number, y: number): Hunk[] {
  const out: Hunk[] = []
  for (let d = trail.length - 1; d > 0; d--) {
    const best = trail[d] ?? new Map<number, number>()
    const far = (k: number) => best.get(k) ?? -1
    const k = x - y
    const down = k === -d || (k !== d && far(k - 1) < far(k + 1))
    const before = down ? k + 1 : k - 1
    const px = far(before)
    const py = px - before
    const one = down ? { from: px, until: px, to: py, end: py + 1 } : { from: px, until: px + 1, to: py, end: py }
    const next = out[0]
    if (next && next.from === one.until && next.to === one.end) out[0] = { from: one.from, until: next.until, to: one.to, end: next.end }
    else out.unshift(one)
    x = px
    y = py
  }
  return out
}

// A Part of a merge: what both have, what one changed in the place of so many
// lines of before, or what both changed in different ways.
export type Part = { kind: 'same'; lines: string[] } | { kind: 'mine' | 'theirs'; lines: string[]; before: number } | { kind: 'conflict'; base: string[]; mine: string[]; theirs: string[] }

// merge joins two changes of one text, as diff3 does.
export function merge(base: readonly string[], mine: readonly string[], theirs: readonly string[]): Part[] {
  const ours = diffLines(base, mine)
  const others = diffLines(base, theirs)
  const out: Part[] = []
  let at = 0
  let [i, k] = [0, 0]
  let [byMine, byTheirs] = [0, 0] // by how much each text is ahead of the base
  const same = (until: number) => {
    if (until > at) out.push({ kind: 'same', lines: base.slice(at, until) })
  }
  while (i < ours.length || k < others.length) {
    const from = Math.min(ours[i]?.from ?? Infinity, others[k]?.from ?? Infinity)
    let until = from
    const [firstI, firstK] = [i, k]
    const [startMine, startTheirs] = [from + byMine, from + byTheirs]
    for (let grown = true; grown; ) {
      grown = false
      const a = ours[i]
      const b = others[k]
      if (a && (a.from < until || a.from === from || (a.from === until && k > firstK))) {
        until = Math.max(until, a.until)
        byMine = a.end - a.until
        i++
        grown = true
      } else if (b && (b.from < until || b.from === from || (b.from === until && i > firstI))) {
        until = Math.max(until, b.until)
        byTheirs = b.end - b.until
        k++
        grown = true
      }
    }
    same(from)
    at = until
    const my = mine.slice(startMine, until + byMine)
    const their = theirs.slice(startTheirs, until + byTheirs)
    if (k === firstK) out.push({ kind: 'mine', lines: my, before: until - from })
    else if (i === firstI) out.push({ kind: 'theirs', lines: their, before: until - from })
    else if (my.join('\n') === their.join('\n')) out.push({ kind: 'same', lines: my })
    else out.push({ kind: 'conflict', base: base.slice(from, until), mine: my, theirs: their })
  }
  same(base.length)
  return out
}
