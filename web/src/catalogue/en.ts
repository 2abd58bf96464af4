// Every word of the page. zh.ts has the same.
export const en = {
  lang: 'en',
  app: 'Glassbox',
  skip: 'Skip to content',
  nav: { main: 'Main', sandboxes: 'Sandboxes', history: 'History', connections: 'Connections', settings: 'Settings', recent: 'Recent', more: 'More', search: 'Search', fold: 'Fold the side bar' },
  account: { language: '中文', languageName: 'Switch to Chinese', theme: (now: string) => `Theme: ${now}`, light: 'light', dark: 'dark', system: 'as the system', signOut: 'Sign out' },
  act: {
    cancel: 'Cancel', close: 'Close', retry: 'Try again', copy: 'Copy', copied: 'Copied', save: 'Save', remove: 'Remove', edit: 'Edit', add: 'Add', more: 'More actions', clear: 'Clear', show: 'Show', download: 'Download', back: 'Back',
  },
  status: {
    started: 'running', succeeded: 'succeeded', failed: 'failed', timeout: 'timed out', cancelled: 'stopped', denied: 'denied', unknown: 'outcome unknown',
  },
  state: { Running: 'Running', Paused: 'Paused', Pending: 'Starting', Starting: 'Starting', Pausing: 'Pausing', Resuming: 'Resuming', Stopping: 'Stopping', Failed: 'Failed', Terminated: 'Ended', Unknown: 'Unknown', gone: 'Ended', silent: 'Service does not answer' },
  problem: {
    title: 'That did not work', request: (id: string) => `Request ${id}`, unreachable: 'The server is not reached', unreachableAdvice: 'See that glassbox serve runs. Trying again by itself.',
    fault: 'This part of the page met a fault', faultAdvice: 'The rest goes on. Trying again may help.', details: 'Copy details', notFound: 'There is no such page', home: 'To the sandboxes',
  },
  live: { offline: (since: string) => `Not connected to the server since ${since}. Showing what is here, and trying again.`, on: 'Live', off: 'Live is off', lost: 'Connecting again', waiting: (what: string) => `Still waiting for ${what}` },
  signIn: {
    title: 'Sign in', link: 'Open the link that glassbox serve prints. This prints a new one:', command: 'glassbox login-link', or: 'Or with a password', name: 'Name', password: 'Password', submit: 'Sign in',
    using: 'Using the link', used: 'Links work once, for 15 minutes.',
  },
  role: { viewer: 'viewer', operator: 'operator', admin: 'admin', needs: (role: string) => `Needs the role ${role}. Ask an admin.` },
  sandboxes: {
    title: 'Sandboxes', summary: (all: number, running: number) => `${all}, of which ${running} running`, create: 'New sandbox', filter: 'Filter by name, id, image or label', all: 'All', running: 'Running', paused: 'Paused', ended: 'Ended',
    name: 'Name', stateCol: 'State', image: 'Image', created: 'Created', expires: 'Expires', connection: 'Connection', menu: (name: string) => `Actions for ${name}`, select: (name: string) => `Select ${name}`, selectAll: 'Select all', group: 'By connection',
    local: 'this machine', none: 'No sandboxes yet.', noneNext: 'Create one here, or let an agent make one:', nothing: 'Nothing matches.', clear: 'Clear filters', never: 'Never', selected: (n: number) => `${n} selected`,
    silent: (name: string, ago: string) => `${name} has not answered for ${ago}.`, silentRows: (at: string) => `The rows below are from ${at}; history stays readable.`, silentNever: 'It has not answered since this server started.', lastSeen: (state: string, at: string) => `Last seen ${state} at ${at}`,
    endedAt: (at: string) => `Ended ${at}, history kept`, since: (ago: string) => `for ${ago}`, loadMore: 'Show older ones', left: (t: string) => `${t} left`, expired: 'now',
  },
  box: {
    pause: 'Pause', resume: 'Resume', renew: 'Renew', remove: 'Delete', open: 'Open', copyId: 'Copy id', export: 'Export history',
    renewTitle: (name: string) => `Renew ${name}`, renewAsk: 'From now on it lives for', renewed: (name: string, t: string) => `${name} lives for ${t} from now`, expiresIn: (t: string) => `Expires in ${t}`, noExpiry: 'Does not expire',
    deleteTitle: (name: string) => `Delete ${name}`, deleteAsk: 'All that runs in it ends, and its files are gone. Its history stays. To delete it, type its name:', deleteMany: (n: number) => `Delete ${n} sandboxes`, deleteManyAsk: 'All that runs in them ends, and their files are gone. Their histories stay. To delete them, type how many they are:', deleted: (name: string) => `Deleted ${name}`, deleteDo: 'Delete sandbox', deleteManyDo: 'Delete sandboxes',
    paused: (name: string) => `Paused ${name}`, resumed: (name: string) => `${name} goes on`, pausedNow: 'Paused. Nothing in it runs, and nothing is lost.', endedNow: (at: string) => `Ended ${at}. Its history is whole.`, failedNow: 'It has failed. Its history is whole.', openHistory: 'Open history',
    minutes: (n: number) => `${n} minutes`, hours: (n: number) => (n === 1 ? '1 hour' : `${n} hours`), days: (n: number) => (n === 1 ? '1 day' : `${n} days`),
  },
  create: {
    title: 'New sandbox', connection: 'Connection', image: 'Image', imageHint: 'host: the programs of this machine. Else as python:3.12.', name: 'Name', nameHint: 'Of any script; need not be unique.', life: 'Lifetime', lifeService: 'As the service says', more: 'Size, folder, environment, labels, network', cpu: 'Processors', memory: 'Memory', workdir: 'Folder', env: 'Environment', envHint: 'One NAME=value a line', labels: 'Labels', labelsHint: 'One key=value a line', network: 'Network', networkDefault: 'As the service says', networkNone: 'None', networkProxy: 'Through the recorded proxy',
    submit: 'Create', working: (t: string) => `Creating, ${t}`, created: (name: string) => `Created ${name}`, keepOpen: 'It goes on when this is closed.', bad: (line: string) => `Not NAME=value: ${line}`,
  },
  tabs: { label: 'Sandbox', overview: 'Overview', history: 'History', files: 'Files', commands: 'Commands', terminal: 'Terminal' },
  files: {
    title: 'Files', tree: 'File tree', editor: 'Editor', open: 'Open files', crumbs: 'Where this file is', close: (name: string) => `Close ${name}`, unsaved: 'Unsaved', saving: 'Saving', notSaved: 'Not saved', reading: 'Reading', emptyFolder: 'Nothing in it',
    closed: 'Contents of files may be secret.', notRunning: 'Files can be read while the sandbox runs.', bom: 'with BOM', mixed: 'mixed line ends', position: (line: number, column: number) => `Ln ${line}, Col ${column}`,
  },
  overview: {
    facts: 'Facts', id: 'Id', instance: 'Instance', image: 'Image', state: 'State', created: 'Created', expires: 'Expires', ended: 'Ended', connection: 'Connection', labels: 'Labels', warnings: 'Warnings', why: 'Why', snapshot: 'From snapshot',
    running: (t: string) => `Running for ${t}.`, atWork: (who: string) => `${who} is at work.`, failures: 'Last failures', noFailures: 'Nothing has failed.', all: 'All in history', latest: 'Latest', nothing: 'Nothing was recorded here yet.', now: 'Running now', noRunning: 'Nothing runs right now.', activity: 'Activity', copyJson: 'Copy as JSON',
  },
  history: {
    title: 'History', search: 'Filter, or search commands, paths and output', searchHint: 'status:failed  type:command  actor:  run:  thread:  path:  exit:1', group: 'Group', groups: { run: 'By run', thread: 'By thread', actor: 'By actor', hour: 'By hour', none: 'Not grouped' },
    newest: 'Newest first', oldest: 'Oldest first', export: 'Export', reads: 'Reads', readsShown: 'Reads are shown', readsHidden: 'Reads are hidden', failures: 'Failures', empty: 'Nothing was recorded here yet.', emptyNext: 'What is done in it through Glassbox shows up here at once.', nothing: 'Nothing matches.', clear: 'Clear filters',
    filter: { type: 'type', status: 'status', actor: 'actor', run: 'run', thread: 'thread', path: 'path', exit: 'exit', source: 'source', sandbox: 'sandbox', since: 'since', until: 'until' }, removeFilter: (name: string) => `Remove the filter ${name}`,
    ops: (n: number, text: string) => (n === 1 ? `${text} op` : `${text} ops`), failed: (n: string) => `${n} failed`, noRun: 'no run', run: 'run', thread: 'thread', noActor: 'unknown', earlier: (n: number, failed: number) => `${n} earlier operations${failed ? `, ${failed} failed` : ''}`, fewer: 'Fewer', loading: 'Loading older operations', end: 'The beginning of this history', newOnes: (n: number) => `${n} new`, follow: 'Follow the list live',
    exit: (n: number) => `exit ${n}`, killed: 'killed', stoppedAt: (t: string) => `stopped at ${t}`, files: (n: number) => (n === 1 ? '1 file' : `${n} files`), isNew: 'new', isBinary: 'no text', cut: 'output cut', unknown: 'outcome unknown', notRecorded: 'not recorded', gap: 'Not recorded.', restarted: 'The recorder was started again.',
    strip: (n: string, failed: string, from: string, to: string) => `${n} operations, ${failed} failed, ${from} to ${to}`, lanes: { command: 'Commands', file: 'Files', terminal: 'Terminal', other: 'Other' }, list: 'Operations', spoken: (n: number, failed: number) => `${n} new operations, ${failed} failed`,
    noMirror: 'This server keeps no copy of all histories, so they cannot be searched together.', noMirrorNext: 'Start it with --mirror. The history of each sandbox stands in its own tab.', incomplete: 'The search ran out of time before the page was full.', goOn: 'Go on',
    noSandbox: 'All sandboxes', whole: 'Show all time', range: (from: string, to: string) => `${from} to ${to}`,
  },
  commands: {
    line: 'Command', placeholder: 'Run a command', keys: 'Enter runs it, Shift Enter begins a new line, arrow-up brings earlier ones', options: 'Folder, environment, time limit', run: 'Run', cwd: 'Folder', cwdHint: 'Empty: the working directory.', timeout: 'Time limit, in seconds', timeoutHint: 'Empty: none.', timeoutWrong: 'Not a number of seconds.', envHint: 'One NAME=value a line. Values are not kept.', background: 'In the background: it goes on whoever watches', stdin: 'It is given input', reset: 'Reset',
    one: 'Command and its output', running: (n: number) => `Running, ${n}`, earlier: 'Earlier', older: 'Show older ones', none: 'No command has been run here yet.', notRunning: 'The sandbox does not run. What was run in it can be read.', again: 'Run again', edit: 'Edit and run', operation: 'Open operation', stop: 'Stop', stopping: 'Stopping', kill: 'Kill', input: 'Input for the program', send: 'Send', eof: 'End of input',
    lines: (n: string) => `${n} lines`, dropped: (n: string) => `the last ${n} are shown`, skipped: (n: string) => `${n} are not kept`, connecting: 'Connecting', live: 'Live', lost: 'Connection lost. Reconnecting, nothing is missed.', ended: 'Ended',
  },
  terminal: {
    open: 'New terminal', close: (no: string) => `Close terminal ${no}`, closed: 'The terminal ends in 10 seconds', undo: 'Undo', shell: 'shell', screen: 'Screen of the terminal', past: 'Earlier', none: 'No terminal is open. One that you open stays when you go, and is recorded.', needs: 'A terminal can be used by operators only.', notRunning: 'The sandbox does not run: there are no terminals in it. What was typed and shown stands in its history.',
    recording: (t: string) => `Recording ${t}`, yours: 'You have the keyboard', watching: 'Watching. Somebody else has the keyboard.', take: 'Take the keyboard', lost: 'Reconnecting. Nothing typed is lost.', ended: (code: number) => (code < 0 ? 'Ended' : `Ended, exit ${code}`), inHistory: 'Open in history', find: 'Find on the screen', missing: (n: string) => `${n} are not shown here. The history has what was kept of them.`,
    linkTitle: 'Open this link?', linkAsk: 'A program in the sandbox wrote it. It leads to', linkDo: 'Open link',
  },
  kinds: {
    'command.execute': 'Command', 'file.read': 'Read', 'file.write': 'Write', 'file.list': 'List', 'file.delete': 'Delete', 'file.append': 'Append', 'file.edit': 'Edit', 'file.stat': 'Look up', 'file.mkdir': 'New folder', 'file.move': 'Move', 'file.chmod': 'Change mode', 'file.glob': 'Find by name', 'file.grep': 'Search', 'file.download': 'Download', 'file.upload': 'Upload',
    'terminal.session': 'Terminal', 'sandbox.create': 'Sandbox created', 'sandbox.delete': 'Sandbox deleted', 'sandbox.pause': 'Sandbox paused', 'sandbox.resume': 'Sandbox resumed', 'sandbox.renew': 'Expiry moved', 'sandbox.metadata': 'Labels changed', 'sandbox.snapshot': 'Snapshot', 'recorder.restarted': 'Recorder restarted', 'history.gap': 'Not recorded', 'network.connect': 'Connection',
  },
  details: {
    label: 'Details', actor: 'Actor', run: 'Run', thread: 'Thread', took: 'Took', started: 'Started', folder: 'Folder', source: 'Source', sandbox: 'Sandbox', output: 'Output', changes: 'Changes', request: 'Request', raw: 'Raw', previous: 'Previous operation', next: 'Next operation', link: 'Copy link', shell: 'Copy as command', notIn: 'Not in the current filter', notFound: 'This operation is not kept any more.',
    wrap: 'Wrap lines', find: 'Find in output', downloadOut: (name: string) => `Download ${name}`, complete: (n: string) => `Complete, ${n}`, partly: 'Partly recorded', cutNote: (n: string) => `Not complete: ${n} are kept`, stillRunning: 'Still running', none: 'It printed nothing.', notKept: 'Its output is not kept.', earlierOutput: 'Show earlier output', laterOutput: 'Show more output', colours: 'Colours', rawOutput: 'As it came',
    unified: 'Unified', sideBySide: 'Side by side', noDiff: 'No text to compare.', diffCut: 'The difference is cut, or was too large to be made.', created: 'Created', changed: 'Changed', deleted: 'Deleted', before: 'Before', after: 'After', noChanges: 'It changed no files.', unknownChanges: 'What it did to files is not known.', incomplete: (why: string) => `Not complete: ${why}`, together: 'At the same time as other operations, which may have done it',
    environment: 'Environment, values are not kept', limit: 'Time limit', result: 'Result', exitCode: 'Exit code', lines: (n: string) => `${n} lines`, moreFiles: (n: number) => `and ${n} more`, mode: 'mode',
  },
  exporting: { title: 'Export', what: 'What the filter shows, with all that is older.', format: 'Format', json: 'JSON', jsonl: 'JSON, one a line', csv: 'CSV, for a spreadsheet', go: 'Export', progress: (n: string) => `${n} operations so far`, done: (n: string) => `${n} operations exported` },
  palette: { title: 'Search and commands', placeholder: 'Find a sandbox, a page or an action', searchAll: (q: string) => `Search all history for “${q}”`, none: 'Nothing is called so.', page: 'Page', sandbox: 'Sandbox', action: 'Action', theme: 'Switch the theme', language: 'Switch to Chinese', keys: 'Keys' },
  keys: { title: 'Keys', palette: 'search and commands', filter: 'filter', next: 'next', previous: 'previous', open: 'open', close: 'one step back', select: 'select', create: 'new sandbox', failures: 'failures only', group: 'next grouping', order: 'flip the order', copy: 'copy link', nextFailure: 'next failure', help: 'this list', rail: 'fold the side bar', live: 'live' },
  connections: {
    title: 'Connections', add: 'Add a service', name: 'Name', endpoint: 'Address', state: 'State', sandboxes: 'Sandboxes', local: 'this machine', key: 'Key', keyHint: 'Kept sealed, never shown again.', keyKeep: 'Empty: stays as it is.', proxy: 'Reach sandboxes through the service', proxyHint: 'Off: this server reaches their addresses itself.', enabled: 'In use', answering: 'Answers', disabled: 'Switched off', silent: (ago: string) => `No answer for ${ago}`, never: 'No answer yet', test: 'Test', testing: 'Testing', testOk: (version: string, ms: string, n: number) => `Answers in ${ms}${version ? `, version ${version}` : ''}, ${n} sandboxes`, edit: 'Edit connection', addTitle: 'Add a service', addDo: 'Add connection', saveDo: 'Save connection',
    remove: 'Remove connection', removeTitle: (name: string) => `Remove ${name}`, removeAsk: 'Its sandboxes go on, and what was mirrored of them stays. This server only forgets how to reach them.', removed: (name: string) => `Removed ${name}`, saved: (name: string) => `Saved ${name}`, changedMeanwhile: 'Somebody else has changed this connection meanwhile. It was read anew.', menu: (name: string) => `Actions for ${name}`,
  },
  settings: {
    title: 'Settings', account: 'Account', tokens: 'Tokens', signIns: 'Sign-ins', users: 'Users', parts: 'Parts of the settings', you: 'You', role: 'Role', via: 'Signed in by', version: 'Version of the server', password: 'Password', passwordNone: 'You have no password: you sign in by link.', passwordHas: 'You have a password.', current: 'Current password', next: 'New password', passwordDo: 'Change password', passwordSet: 'Set password', passwordDone: 'Password changed; your other browsers are signed out',
    via_link: 'a link', via_password: 'a password', via_token: 'a token',
    tokenNew: 'New token', tokenName: 'Name', tokenLife: 'Lives for', tokenScopes: 'It may', tokenDo: 'Make token', tokenOnce: 'This is shown once. Send it as Authorization: Bearer …', tokenNone: 'No tokens yet. A program needs one to use this server.', tokenUsed: (at: string) => `used ${at}`, tokenUnused: 'never used', until: (at: string) => `until ${at}`, revoke: 'Revoke', revokeTitle: (name: string) => `Revoke ${name}`, revokeAsk: 'Programs that use it are refused from now on.', revokeDo: 'Revoke token', revoked: (name: string) => `Revoked ${name}`, everybody: 'Of everybody',
    signInHere: 'this browser', signInEnd: 'Sign out', signInEnded: 'That browser is signed out', seen: (at: string) => `seen ${at}`,
    userNew: 'New user', userName: 'Name', userDo: 'Make user', userPassword: 'Password', userPasswordHint: 'Empty: signs in by link only.', userLink: 'Sign-in link', userLinkTitle: (name: string) => `Sign-in link of ${name}`, userLinkOnce: 'It works once, for 15 minutes.', userDisable: 'Switch off', userEnable: 'Switch on', userDisabled: 'switched off', userRemove: 'Remove user', userRemoveTitle: (name: string) => `Remove ${name}`, userRemoveAsk: 'The tokens of this user go too. What was done stays in the histories.', userRemoved: (name: string) => `Removed ${name}`, userSaved: (name: string) => `Saved ${name}`, hasPassword: 'password', linkOnly: 'link only',
    scopes: { 'sandboxes:read': 'see sandboxes', 'sandboxes:write': 'make and end sandboxes', 'history:read': 'read histories', 'connections:read': 'see connections', 'connections:write': 'change connections', admin: 'do all an admin does' },
  },
}

export type Catalogue = typeof en
