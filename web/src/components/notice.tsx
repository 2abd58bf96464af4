import { CircleAlert, TriangleAlert } from 'lucide-react'
import { Component, type ReactNode, useEffect, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Problem, unreachable } from '@/lib/api'
import { cn } from '@/lib/cn'
import { visible } from '@/lib/safe'
import { useWords } from '@/lib/words'

// Notice tells what went wrong, why in the server's own words, and what to do.
export function Notice({ error, onRetry, title }: { error: unknown; onRetry?: () => void; title?: string }) {
  const w = useWords()
  const problem = error instanceof Problem ? error : undefined
  const off = problem?.code === unreachable
  const text = error instanceof Error ? error.message : String(error)
  return (
    <div role="alert" className="flex items-start gap-3 rounded-r-md border-l-2 border-fail bg-fail-soft px-3 py-2.5">
      <CircleAlert className="mt-0.5 size-4 shrink-0 text-fail" aria-hidden />
      <div className="min-w-0 flex-1">
        <p className="font-medium">{off ? w.problem.unreachable : (title ?? w.problem.title)}</p>
        {!off && <p className="font-mono text-sm break-words">{visible(text)}</p>}
        {(off || problem?.advice) && <p className="text-muted-foreground">{off ? w.problem.unreachableAdvice : problem?.advice}</p>}
        {problem?.fields.map((one) => <p key={one.name} className="font-mono text-sm">{visible(`${one.name}: ${one.problem}`)}</p>)}
        {problem?.request && <p className="font-mono text-xs text-faint">{w.problem.request(problem.request)}</p>}
      </div>
      {onRetry && <Button size="sm" onClick={onRetry}>{w.act.retry}</Button>}
    </div>
  )
}

export function Warning({ children, action }: { children: ReactNode; action?: ReactNode }) {
  return (
    <div className="flex items-start gap-3 bg-warn-soft px-5 py-2.5 max-desk:px-4">
      <TriangleAlert className="mt-0.5 size-4 shrink-0 text-warn" aria-hidden />
      <div className="min-w-0 flex-1">{children}</div>
      {action}
    </div>
  )
}

export function Empty({ text, children }: { text: string; children?: ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-3 px-5 py-14 text-center">
      <p className="max-w-lg text-muted-foreground">{text}</p>
      {children}
    </div>
  )
}

// Skeleton has the shape of what will come; it shows late, so that nothing flickers.
export function Skeleton({ rows = 8, height = 44, what }: { rows?: number; height?: number; what?: string }) {
  const w = useWords()
  const [long, setLong] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), 5000)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div className="late" aria-busy>
      {long && what && <p className="px-5 py-2 text-muted-foreground" role="status">{w.live.waiting(what)}</p>}
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} className="flex items-center gap-4 border-b px-5" style={{ height }}>
          <span className="h-2.5 rounded-sm bg-muted" style={{ width: `${22 + ((i * 7) % 18)}%` }} />
          <span className="h-2.5 flex-1 rounded-sm bg-muted/60" />
        </div>
      ))}
    </div>
  )
}

// Boundary keeps a fault of one part from the others.
export class Boundary extends Component<{ children: ReactNode; className?: string }, { fault?: Error }> {
  state: { fault?: Error } = {}
  static getDerivedStateFromError = (fault: Error) => ({ fault })
  render() {
    const { fault } = this.state
    return fault ? <Fault fault={fault} onRetry={() => this.setState({ fault: undefined })} className={this.props.className} /> : this.props.children
  }
}

export function Fault({ fault, onRetry, className }: { fault: unknown; onRetry: () => void; className?: string }) {
  const w = useWords()
  return (
    <div className={cn('p-5', className)}>
      <Notice error={fault} onRetry={onRetry} title={w.problem.fault} />
      <Button size="sm" variant="ghost" className="mt-2" onClick={() => navigator.clipboard.writeText(`${fault instanceof Error ? fault.stack : String(fault)}\n${location.href}`)}>{w.problem.details}</Button>
    </div>
  )
}
