// The plain page of the console. Whatever comes from a sandbox is put in as
// text, never as markup.

const main = document.querySelector('#main')
const account = document.querySelector('#account')
const status = document.querySelector('#status')

// element builds an element: el('a', {href: '/'}, 'text', otherElement).
function el(name, attributes = {}, ...children) {
  const node = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value)
    else if (value === true) node.setAttribute(key, '')
    else if (value !== undefined && value !== false) node.setAttribute(key, value)
  }
  node.append(...children.filter((child) => child !== undefined && child !== null))
  return node
}

// Control characters, and those that turn the direction of text around.
const hostile = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g
const plain = (text) => String(text ?? '').replace(hostile, '\ufffd')
const word = (text, cls) => el('bdi', { class: cls }, plain(text).replace(/\s+/g, ' '))

// Escape sequences move cursors and set colours: here they say nothing.
const escapes = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]/g

// printed shows output as a terminal would have left it, as far as plain text can.
function printed(text) {
  return plain(text.replace(escapes, '').replace(/\r\n/g, '\n').replace(/[^\n]*\r(?=[^\n])/g, '').replace(/\r/g, ''))
}

class Problem extends Error {
  constructor(response, body) {
    super(body.detail || `the server answers ${response.status}`)
    this.status = response.status
    this.advice = body.advice || ''
    this.id = body.request_id || ''
  }
}

async function ask(path, options = {}) {
  let response
  try {
    response = await fetch('/api/v1' + path, { credentials: 'same-origin', ...options })
  } catch {
    throw new Problem({ status: 0 }, { detail: 'the server is not reached', advice: 'see that glassbox serve runs' })
  }
  if (response.ok) return response
  throw new Problem(response, await response.json().catch(() => ({})))
}

const read = async (path) => (await ask(path)).json()

const send = (path, body) => ask(path, {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: body === undefined ? undefined : JSON.stringify(body),
})

function show(title, ...children) {
  document.title = title ? `${plain(title)} · Glassbox` : 'Glassbox'
  main.replaceChildren(...children.filter((child) => child !== null))
}

function notice(error) {
  return el('div', { class: 'notice bad', role: 'alert' }, el('strong', {}, plain(error.message)),
    error.advice ? el('div', { class: 'quiet' }, plain(error.advice)) : null,
    error.id ? el('div', { class: 'quiet mono' }, `request ${plain(error.id)}`) : null)
}

let clock = 0 // how far the server's is ahead of ours
const now = () => Date.now() + clock

function moment(text) {
  const time = new Date(text)
  const sameDay = time.toDateString() === new Date().toDateString()
  const words = sameDay ? time.toLocaleTimeString() : time.toLocaleString(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' })
  return el('time', { datetime: text, title: time.toLocaleString() }, words)
}

function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} days`
}

function expiry(box) {
  if (box.gone_at) return el('span', { class: 'quiet' }, 'ended ', moment(box.gone_at))
  if (!box.expires_at) return el('span', { class: 'quiet' }, 'never')
  const left = new Date(box.expires_at) - now()
  return el('span', { title: new Date(box.expires_at).toLocaleString() }, left > 0 ? `in ${span(left)}` : 'now')
}

const tones = {
  Running: 'good', Failed: 'bad', Paused: 'warn', Pending: 'warn',
  succeeded: 'good', failed: 'bad', timeout: 'bad', unknown: 'warn', started: 'warn',
}
const state = (name) => el('span', { class: `state ${tones[name] ?? ''}` }, plain(name))

// Sign-in

async function enter(path, body) {
  await send(path, body)
  history.replaceState(null, '', '/sandboxes')
  await start()
}

async function signIn(error) {
  account.replaceChildren()
  const link = decodeURIComponent(location.hash.slice(1))
  if (link) {
    // The secret goes out of the address, and so of the browser's history.
    history.replaceState(null, '', '/sign-in')
    try {
      return await enter('/auth/link', { link })
    } catch (problem) {
      error = problem
    }
  }
  const name = el('input', { name: 'name', autocomplete: 'username', required: true, autofocus: true })
  const password = el('input', { name: 'password', type: 'password', autocomplete: 'current-password', required: true })
  const form = el('form', {
    onsubmit: async (event) => {
      event.preventDefault()
      try {
        await enter('/auth/password', { name: name.value, password: password.value })
      } catch (problem) {
        signIn(problem)
      }
    },
  }, el('label', {}, 'Name', name), el('label', {}, 'Password', password), el('button', { class: 'main', type: 'submit' }, 'Sign in'))
  show('Sign in', el('section', { class: 'card' }, el('h1', {}, 'Sign in'), error ? notice(error) : null,
    el('p', {}, 'Open the link that ', el('code', {}, 'glassbox serve'), ' prints; ', el('code', {}, 'glassbox login-link'), ' prints a new one.'),
    el('p', { class: 'quiet' }, 'Or, for who has one, with a password:'), form))
}

async function signOut() {
  await send('/auth/sign-out').catch(() => {})
  history.replaceState(null, '', '/sign-in')
  signIn()
}

// Sandboxes

let refresh

async function sandboxes(cursor = '') {
  const page = await read(`/sandboxes?limit=50${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`)
  clock = new Date(page.now) - Date.now()
  const names = Object.fromEntries(page.connections.map((c) => [c.id, c.name]))
  const late = page.connections.filter((c) => c.not_answering_since).map((c) => el('div', { class: 'notice', role: 'status' },
    el('strong', {}, word(c.name), ' is not answering since ', moment(c.not_answering_since)),
    el('div', { class: 'quiet' }, plain(c.problem?.detail), c.seen_at ? '; its sandboxes are shown as they were seen last.' : '')))
  const rows = page.items.map((box) => el('tr', {},
    el('td', {}, el('a', { href: `/sandboxes/${box.connection}/${encodeURIComponent(box.id)}` }, word(box.name || box.id)),
      el('div', { class: 'quiet mono' }, plain(box.id))),
    el('td', {}, state(box.state)), el('td', {}, word(names[box.connection] ?? box.connection)),
    el('td', {}, moment(box.created_at)), el('td', {}, expiry(box))))
  const table = el('div', { class: 'table', tabindex: '0', role: 'region', 'aria-label': 'Sandboxes' }, el('table', {},
    el('thead', {}, el('tr', {}, ...['Name', 'State', 'Connection', 'Made', 'Expires'].map((name) => el('th', { scope: 'col' }, name)))),
    el('tbody', {}, ...rows)))
  const empty = el('p', { class: 'quiet' }, 'There are no sandboxes yet. Make one with ', el('code', {}, 'glassbox run -- python3 --version'), '.')
  show('Sandboxes', el('div', { class: 'bar' }, el('h1', {}, 'Sandboxes'), el('button', { type: 'button', onclick: () => go(() => sandboxes()) }, 'Refresh')),
    ...late, rows.length ? table : empty,
    page.next_cursor ? el('p', { class: 'more' }, el('button', { type: 'button', onclick: () => go(() => sandboxes(page.next_cursor)) }, 'Older ones')) : null)
}

// Operations

let events

function what(op) {
  if (op.command) return op.command.line
  if (op.file) return op.file.old_path ? `${op.file.old_path} → ${op.file.path}` : op.file.path
  const request = op.request ?? {}
  return request.host ? `${request.host}:${request.port}` : request.path ?? request.name ?? ''
}

const tail = 16 * 1024

// output reads the end of a stream.
async function output(base, op, stream, kept) {
  if (!kept) return null
  const response = await ask(`${base}/operations/${encodeURIComponent(op.id)}/output?stream=${stream}`, { headers: { Range: `bytes=-${tail}` } })
  const text = printed(new TextDecoder().decode(await response.arrayBuffer()))
  return el('div', {}, el('div', { class: 'quiet' }, stream, kept > tail ? ` (the last ${tail / 1024} of ${Math.ceil(kept / 1024)} KiB)` : ''),
    el('pre', { class: stream === 'stderr' ? 'err' : '', tabindex: '0' }, text))
}

async function describe(base, op, into) {
  const facts = [['Status', state(op.status)], ['Began', moment(op.started_at)]]
  if (op.actor?.id) facts.push(['By', word(`${op.actor.id} (${op.actor.type})`)])
  facts.push(['Through', word(op.source)])
  if (op.actor?.run_id) facts.push(['Run', word(op.actor.run_id)])
  if (op.command) {
    facts.push(['Directory', word(op.command.cwd)])
    if (op.command.exit_code !== undefined) facts.push(['Exit code', word(op.command.exit_code)])
  }
  const reason = op.result?.reason ?? op.result?.error?.message
  if (reason) facts.push(['Why', word(reason)])
  facts.push(['Id', word(op.id, 'mono')])
  const parts = [el('dl', {}, ...facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]))]
  try {
    if (op.command) {
      parts.push(await output(base, op, 'stdout', op.command.stdout_kept_bytes), await output(base, op, 'stderr', op.command.stderr_kept_bytes))
    }
    if (op.file?.diff) parts.push(el('pre', { tabindex: '0' }, plain(op.file.diff)))
    const changes = op.changes
    for (const kind of ['created', 'changed', 'deleted']) {
      if (changes?.[kind]?.length) parts.push(el('div', {}, el('span', { class: 'quiet' }, `${kind}: `), word(changes[kind].slice(0, 20).map((f) => f.path).join(', '))))
    }
  } catch (problem) {
    parts.push(notice(problem))
  }
  into.replaceChildren(...parts.filter(Boolean))
}

function row(base, op) {
  const detail = el('div', { class: 'detail' })
  const node = el('details', { ontoggle: () => node.open && describe(base, op, detail) },
    el('summary', {}, moment(op.started_at), state(op.status), el('span', { class: 'what' }, word(op.type, 'quiet'), ' ', word(what(op), 'mono')),
      el('span', { class: 'quiet' }, op.completed_at ? span(op.duration_ms) : 'running')), detail)
  return el('li', { 'data-id': op.id }, node)
}

async function sandbox(connection, id) {
  const base = `/connections/${encodeURIComponent(connection)}/sandboxes/${encodeURIComponent(id)}`
  const box = await read(base)
  const list = el('ol', { 'aria-label': 'Operations, newest first' })
  const more = el('p', { class: 'more' })
  const title = box.name || box.id
  show(title, el('p', {}, el('a', { href: '/sandboxes' }, '← Sandboxes')),
    el('div', { class: 'bar' }, el('div', {}, el('h1', {}, word(title)), el('span', { class: 'quiet mono' }, plain(box.id))),
      el('div', {}, state(box.state), box.gone_at ? ' · ' : ' · expires ', expiry(box))),
    box.message ? el('p', { class: 'notice' }, plain(box.message)) : null, list, more)
  const older = async (cursor) => {
    const page = await read(`${base}/operations?limit=50${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`)
    list.append(...page.items.map((op) => row(base, op)))
    more.replaceChildren(...(page.next_cursor ? [el('button', { type: 'button', onclick: () => go(() => older(page.next_cursor)) }, 'Older ones')] : []))
  }
  try {
    await older('')
  } catch (problem) {
    more.replaceChildren(notice(problem))
    return
  }
  if (!list.children.length) more.replaceChildren(el('span', { class: 'quiet' }, 'Nothing was recorded here yet.'))
  if (!box.gone_at && box.state === 'Running') follow(base, list)
}

// follow keeps the list up to date. What is open stays open.
function follow(base, list) {
  events = new EventSource(`/api/v1${base}/events`)
  events.addEventListener('operation', (event) => {
    const op = JSON.parse(event.data)
    const old = [...list.children].find((item) => item.dataset.id === op.id)
    const item = row(base, op)
    if (old?.firstChild.open) item.firstChild.open = true
    if (old) old.replaceWith(item)
    else list.prepend(item)
    if (op.completed_at) status.textContent = `${plain(op.type)}: ${plain(op.status)}`
  })
  events.addEventListener('reset', () => go(route))
  events.addEventListener('end', () => events?.close())
}

// Routes

async function go(view) {
  try {
    await view()
  } catch (problem) {
    if (problem.status === 401) return signIn()
    show('Not possible', el('p', {}, el('a', { href: '/sandboxes' }, '← Sandboxes')), notice(problem))
  }
}

async function route() {
  clearInterval(refresh)
  events?.close()
  events = undefined
  const [first, connection, id] = location.pathname.split('/').slice(1).map(decodeURIComponent)
  if (first === 'sandboxes' && connection && id) return sandbox(connection, id)
  await sandboxes()
  refresh = setInterval(() => document.hidden || main.contains(document.activeElement) || go(() => sandboxes()), 10_000)
}

async function start() {
  const me = await read('/auth/me')
  clock = new Date(me.now) - Date.now()
  account.replaceChildren(el('span', {}, word(me.user.name), ` · ${me.user.role}`), el('button', { type: 'button', onclick: signOut }, 'Sign out'))
  await route()
}

document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href^="/"]')
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  event.preventDefault()
  history.pushState(null, '', link.getAttribute('href'))
  go(route).then(() => main.focus())
})
addEventListener('popstate', () => go(route))
addEventListener('hashchange', () => location.hash.startsWith('#gbl_') && signIn())

if (location.pathname === '/sign-in') signIn()
else go(start)
