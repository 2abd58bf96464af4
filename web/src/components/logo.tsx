export function Logo({ className }: { className?: string }) {
  return (
    <svg aria-hidden viewBox="0 0 20 20" fill="none" className={className}>
      <path d="M10 1.8l7.2 4v8.4l-7.2 4-7.2-4V5.8z" stroke="currentColor" strokeWidth="1.6" strokeLinejoin="round" /><circle cx="10" cy="10" r="3" fill="var(--record)" />
    </svg>
  )
}
