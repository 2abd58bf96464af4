import { type Token, type Tokens, lexer } from 'marked'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, createElement, useMemo } from 'react'
import { readPart } from '@/features/files/contents'
import { ImageView } from '@/features/files/image-view'
import { type Name, base, join, parent } from '@/features/files/names'
import { imageType } from '@/features/files/opening'
import type { Place } from '@/lib/api'
import { visible } from '@/lib/safe'

type Show = { at: Place; name: Name; onShow: (name: Name) => void }

// MarkdownView makes elements of what Markdown says. HTML in it stays text.
export function MarkdownView({ text, ...show }: { text: string } & Show) {
  const tokens = useMemo(() => lexer(text, { gfm: true }), [text])
  return <article tabIndex={0} className="min-h-0 flex-1 overflow-auto px-8 py-5 text-md leading-6 outline-none max-phone:px-4"><div className="flex max-w-[760px] flex-col gap-3">{blocks(tokens, show)}</div></article>
}

const heads = ['', 'text-xl font-semibold border-b pb-1', 'text-lg font-semibold pt-2', 'text-md font-semibold pt-1', 'font-semibold', 'font-medium', 'font-medium text-muted-foreground']

function blocks(tokens: Token[], show: Show): ReactNode {
  return tokens.map((one, i) => <Block key={i} of={one} show={show} />)
}

function Block({ of: token, show }: { of: Token; show: Show }): ReactNode {
  const one: MarkedToken = narrow(token)
  switch (one.type) {
    case 'space':
    case 'def':
      return null
    case 'heading':
      return createElement(`h${Math.min(6, one.depth + 1)}`, { className: heads[one.depth] }, inline(one.tokens, show))
    case 'paragraph':
      return <p className="break-words">{inline(one.tokens, show)}</p>
    case 'code':
      return <pre className="overflow-x-auto rounded-md border bg-muted/60 px-3 py-2 font-mono text-sm" tabIndex={0}>{visible(one.text)}</pre>
    case 'blockquote':
      return <blockquote className="flex flex-col gap-2 border-l-2 border-border-strong pl-3 text-muted-foreground">{blocks(one.tokens, show)}</blockquote>
    case 'hr':
      return <hr className="my-1" />
    case 'list':
      return createElement(one.ordered ? 'ol' : 'ul', { className: `flex flex-col gap-1 pl-6 ${one.ordered ? 'list-decimal' : 'list-disc'}`, start: one.ordered && typeof one.start === 'number' ? one.start : undefined }, one.items.map((item, i) => <li key={i} className={item.task ? 'list-none' : undefined}>{blocks(item.tokens, show)}</li>))
    case 'checkbox':
      return <span role="img" aria-label={one.checked ? '☑' : '☐'} className="mr-1.5 -ml-5">{one.checked ? '☑' : '☐'}</span>
    case 'table':
      return (
        <div className="overflow-x-auto" tabIndex={0}>
          <table className="border-collapse text-base">
            <thead><tr>{one.header.map((cell, i) => <th key={i} className="border px-2.5 py-1 text-left font-medium">{inline(cell.tokens, show)}</th>)}</tr></thead>
            <tbody>{one.rows.map((row, i) => <tr key={i}>{row.map((cell, k) => <td key={k} className="border px-2.5 py-1 align-top">{inline(cell.tokens, show)}</td>)}</tr>)}</tbody>
          </table>
        </div>
      )
    case 'text':
      return 'tokens' in one && one.tokens ? <>{inline(one.tokens, show)}</> : <>{visible(one.text)}</>
    default:
      return <p className="break-words whitespace-pre-wrap">{visible(token.raw)}</p>
  }
}

function inline(tokens: Token[] | undefined, show: Show): ReactNode {
  return (tokens ?? []).map((one, i) => <Inline key={i} of={one} show={show} />)
}

function Inline({ of: token, show }: { of: Token; show: Show }): ReactNode {
  const one: MarkedToken = narrow(token)
  switch (one.type) {
    case 'strong':
      return <strong className="font-semibold">{inline(one.tokens, show)}</strong>
    case 'em':
      return <em>{inline(one.tokens, show)}</em>
    case 'del':
      return <del>{inline(one.tokens, show)}</del>
    case 'codespan':
      return <code className="rounded-sm bg-muted px-1 font-mono text-sm">{visible(one.text)}</code>
    case 'br':
      return <br />
    case 'link':
      return <Away href={one.href} show={show}>{inline(one.tokens, show)}</Away>
    case 'image':
      return <Picture href={one.href} text={one.text} show={show} />
    case 'escape':
    case 'text':
      return 'tokens' in one && one.tokens ? <>{inline(one.tokens, show)}</> : <>{visible(entities(one.text))}</>
    default:
      return <>{visible(token.raw)}</>
  }
}

// narrow knows tokens by their type, as marked makes them.
type MarkedToken = Tokens.Space | Tokens.Def | Tokens.Heading | Tokens.Paragraph | Tokens.Code | Tokens.Blockquote | Tokens.Hr | Tokens.List | Tokens.Checkbox | Tokens.Table | Tokens.Text | Tokens.Strong | Tokens.Em | Tokens.Del | Tokens.Codespan | Tokens.Br | Tokens.Link | Tokens.Image | Tokens.Escape | Tokens.HTML
const isMarked = (token: Token): token is MarkedToken => 'type' in token
const narrow = (token: Token): MarkedToken => (isMarked(token) ? token : { type: 'text', raw: '', text: '' })

const known: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" }
const entities = (text: string) => text.replace(/&(?:amp|lt|gt|quot|#39);/g, (one) => known[one] ?? one)

function inside(href: string, show: Show): Name | undefined {
  const plain = href.split(/[#?]/, 1)[0] ?? ''
  if (!plain || /^[a-z][a-z\d+.-]*:|^\/\//i.test(href)) return undefined
  let path = plain
  try {
    path = decodeURIComponent(plain)
  } catch { /* then it is as it stands */ }
  return path.split('/').reduce((at, part, i) => (part === '' && i === 0 ? '/' : part === '' || part === '.' ? at : part === '..' ? parent(at) : join(at, part)), parent(show.name))
}

// Away opens what lies in the sandbox here, and the web in a tab that knows nothing of this one.
function Away({ href, show, children }: { href: string; show: Show; children: ReactNode }) {
  const name = inside(href, show)
  if (name) return <button type="button" className="text-brand underline" onClick={() => show.onShow(name)}>{children}</button>
  if (/^https?:\/\//i.test(href)) return <a href={href} target="_blank" rel="noopener noreferrer" title={visible(href)} className="text-brand underline">{children}</a>
  return <>{children}</>
}

const largestPicture = 5_000_000

// Picture shows an image of the sandbox; nothing is fetched from elsewhere.
function Picture({ href, text, show }: { href: string; text: string; show: Show }) {
  const name = inside(href, show)
  const { data } = useQuery({
    queryKey: ['files', show.at.connection, show.at.sandbox, 'picture', name], enabled: Boolean(name && imageType(name)), retry: false, staleTime: 60_000, queryFn: ({ signal }) => readPart(show.at, name ?? '/', 0, largestPicture, signal),
  })
  if (name && data) return <span className="flex max-h-[420px] max-w-full flex-col rounded-md border"><ImageView name={name} bytes={data.bytes} /></span>
  return <Away href={href} show={show}>{visible(text || (name ? base(name) : href))}</Away>
}
