// Status and state: the shape first, the colour second, the word always in the name.
import type { ReactNode } from 'react'
import type { Operation, Sandbox } from '@/lib/api'
import { cn } from '@/lib/cn'
import { label, useWords } from '@/lib/words'

function Glyph({ name, className, children }: { name: string; className: string; children: ReactNode }) {
  return <svg role="img" aria-label={name} viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinecap="round" className={cn('size-4 shrink-0', className)}>{children}</svg>
}

const cross = <path d="M5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4" stroke="var(--background)" />

const moving = (
  <>
    <circle cx="8" cy="8" r="5" opacity=".3" />
    <path d="M8 3a5 5 0 0 1 5 5" className="spin" style={{ transformOrigin: '8px 8px' }} />
  </>
)

const statuses: Record<string, { tone: string; shape: ReactNode }> = {
  succeeded: { tone: 'text-ok', shape: <circle cx="8" cy="8" r="2.5" fill="currentColor" stroke="none" /> },
  started: { tone: 'text-brand', shape: moving },
  failed: { tone: 'text-fail', shape: <><rect x="2" y="2" width="12" height="12" rx="3" fill="currentColor" stroke="none" />{cross}</> },
  timeout: { tone: 'text-warn', shape: <><circle cx="8" cy="8" r="5.5" /><path d="M8 5v3.2l2 1.3" /></> },
  denied: { tone: 'text-deny', shape: <><path d="M8 1.5l5.5 2v4c0 3.500-2.300 5.800-5.500 7-3.200-1.200-5.500-3.500-5.500-7v-4z" fill="currentColor" stroke="none" /><path d="M5.500 8h5" stroke="var(--background)" /></> },
  cancelled: { tone: 'text-muted-foreground', shape: <><circle cx="8" cy="8" r="5" /><path d="M4.500 11.500l7-7" /></> },
  unknown: { tone: 'text-muted-foreground', shape: <><circle cx="8" cy="8" r="5.5" strokeDasharray="2 2.3" /><path d="M6.700 6.600a1.400 1.400 0 1 1 1.900 1.300c-.4.2-.6.5-.6.9M8 10.800v.1" /></> },
}

export function StatusGlyph({ op }: { op: Pick<Operation, 'status'> }) {
  const w = useWords()
  const known = statuses[op.status] ?? statuses.unknown
  return <Glyph name={label(w.status, op.status)} className={known?.tone ?? ''}>{known?.shape}</Glyph>
}

const states: Record<string, { tone: string; shape: ReactNode }> = {
  Running: { tone: 'text-ok', shape: <circle cx="8" cy="8" r="4" fill="currentColor" stroke="none" /> },
  Paused: { tone: 'text-muted-foreground', shape: <path d="M6 4.500v7M10 4.500v7" strokeWidth="2" /> },
  Failed: statuses.failed ?? { tone: '', shape: null },
  gone: { tone: 'text-muted-foreground', shape: <circle cx="8" cy="8" r="3.5" /> },
  silent: { tone: 'text-warn', shape: <circle cx="8" cy="8" r="4" strokeDasharray="2 2.200" /> },
  moving: { tone: 'text-brand', shape: moving },
  Unknown: { tone: 'text-muted-foreground', shape: <circle cx="8" cy="8" r="4" strokeDasharray="2 2.200" /> },
}

export function stateOf(box: Pick<Sandbox, 'state' | 'gone_at'>, silent = false): string {
  if (box.gone_at || box.state === 'Terminated') return 'gone'
  return silent ? 'silent' : box.state
}

export function StateGlyph({ box, silent }: { box: Pick<Sandbox, 'state' | 'gone_at'>; silent?: boolean }) {
  const w = useWords()
  const name = stateOf(box, silent)
  const known = states[name] ?? states.moving
  return <Glyph name={label(w.state, name)} className={known?.tone ?? ''}>{known?.shape}</Glyph>
}
