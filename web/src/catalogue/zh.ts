import type { Catalogue } from '@/catalogue/en'

export const zh: Catalogue = {
  lang: 'zh',
  app: 'Glassbox',
  skip: '跳到内容',
  nav: { main: '主导航', sandboxes: '沙箱', history: '历史', connections: '连接', settings: '设置', recent: '最近', more: '更多', search: '搜索', fold: '收起侧栏' },
  account: { language: 'English', languageName: '切换到英文', theme: (now) => `主题：${now}`, light: '浅色', dark: '深色', system: '跟随系统', signOut: '退出登录' },
  act: { cancel: '取消', close: '关闭', retry: '重试', copy: '复制', copied: '已复制', save: '保存', remove: '移除', edit: '编辑', add: '添加', more: '更多操作', clear: '清除', show: '显示', download: '下载', back: '返回' },
  status: { started: '运行中', succeeded: '成功', failed: '失败', timeout: '超时', cancelled: '已停止', denied: '已拒绝', unknown: '结果未知' },
  state: { Running: '运行中', Paused: '已暂停', Pending: '启动中', Starting: '启动中', Pausing: '暂停中', Resuming: '恢复中', Stopping: '停止中', Failed: '失败', Terminated: '已结束', Unknown: '未知', gone: '已结束', silent: '服务无响应' },
  problem: { title: '操作未完成', request: (id) => `请求 ${id}`, unreachable: '无法连接服务器', unreachableAdvice: '确认 glassbox serve 正在运行。正在自动重试。', fault: '页面的这一部分出错', faultAdvice: '其余部分不受影响，可以重试。', details: '复制详情', notFound: '没有这个页面', home: '返回沙箱列表' },
  live: { offline: (since) => `自 ${since} 起与服务器断开。显示的是已有内容，正在重试。`, on: '实时', off: '实时已关闭', lost: '正在重新连接', waiting: (what) => `仍在等待 ${what}` },
  signIn: { title: '登录', link: '打开 glassbox serve 打印的链接。这条命令打印新链接：', command: 'glassbox login-link', or: '或使用密码', name: '名称', password: '密码', submit: '登录', using: '正在使用链接', used: '链接只能用一次，15 分钟内有效。' },
  role: { viewer: '查看者', operator: '操作者', admin: '管理员', needs: (role) => `需要 ${role} 角色，找管理员申请。` },
  sandboxes: {
    title: '沙箱', summary: (all, running) => `共 ${all}，${running} 运行中`, create: '新建沙箱', filter: '按名称、id、镜像或标签筛选', all: '全部', running: '运行中', paused: '已暂停', ended: '已结束',
    name: '名称', stateCol: '状态', image: '镜像', created: '创建时间', expires: '剩余', connection: '连接', menu: (name) => `${name} 的操作`, select: (name) => `选择 ${name}`, selectAll: '全选', group: '按连接', local: '本机', none: '还没有沙箱。', noneNext: '在这里新建，或让智能体创建：', nothing: '没有符合的结果。', clear: '清除筛选', never: '永不', selected: (n) => `已选 ${n}`,
    silent: (name, ago) => `${name} 已 ${ago}无响应。`, silentRows: (at) => `以下为 ${at} 的内容；历史仍可读。`, silentNever: '服务器启动以来它从未响应。', lastSeen: (state, at) => `${at} 最后状态：${state}`, endedAt: (at) => `${at} 结束，历史已保留`, since: (ago) => `已 ${ago}`, loadMore: '显示更早的', left: (t) => `剩余 ${t}`, expired: '即将',
  },
  box: {
    pause: '暂停', resume: '恢复', renew: '续期', remove: '删除', open: '打开', copyId: '复制 id', export: '导出历史', renewTitle: (name) => `续期 ${name}`, renewAsk: '从现在起保留', renewed: (name, t) => `${name} 从现在起保留 ${t}`, expiresIn: (t) => `剩余 ${t}`, noExpiry: '不会到期',
    deleteTitle: (name) => `删除 ${name}`, deleteAsk: '其中运行的一切会结束，文件会消失。历史会保留。输入它的名称以删除：', deleteMany: (n) => `删除 ${n} 个沙箱`, deleteManyAsk: '其中运行的一切会结束，文件会消失。历史会保留。输入数量以删除：', deleted: (name) => `已删除 ${name}`, deleteDo: '删除沙箱', deleteManyDo: '删除沙箱',
    paused: (name) => `已暂停 ${name}`, resumed: (name) => `${name} 已恢复`, pausedNow: '已暂停。没有任何东西在运行，也没有任何丢失。', endedNow: (at) => `${at} 结束，历史完整。`, failedNow: '已失败，历史完整。', openHistory: '打开历史', minutes: (n) => `${n} 分钟`, hours: (n) => `${n} 小时`, days: (n) => `${n} 天`,
  },
  create: { title: '新建沙箱', connection: '连接', image: '镜像', imageHint: 'host 表示本机程序；否则如 python:3.12。', name: '名称', nameHint: '任何文字，可以重复。', life: '保留时间', lifeService: '由服务决定', more: '规格、目录、环境变量、标签、网络', cpu: '处理器', memory: '内存', workdir: '目录', env: '环境变量', envHint: '每行一个 NAME=value', labels: '标签', labelsHint: '每行一个 key=value', network: '网络', networkDefault: '由服务决定', networkNone: '无', networkProxy: '经由有记录的代理', submit: '创建', working: (t) => `创建中，${t}`, created: (name) => `已创建 ${name}`, keepOpen: '关闭后会继续。', bad: (line) => `不是 NAME=value：${line}` },
  tabs: { label: '沙箱', overview: '概览', history: '历史', files: '文件', commands: '命令', terminal: '终端' },
  files: {
    title: '文件', tree: '文件树', editor: '编辑器', open: '打开的文件', crumbs: '文件位置', close: (name) => `关闭 ${name}`, unsaved: '未保存', saving: '保存中', notSaved: '没有保存', reading: '读取中', emptyFolder: '空目录',
    closed: '文件内容可能涉密。', notRunning: '沙箱运行时才能读取文件。', bom: '含 BOM', mixed: '换行符混用', position: (line, column) => `行 ${line}，列 ${column}`,
  },
  overview: { facts: '信息', id: 'Id', instance: '实例', image: '镜像', state: '状态', created: '创建', expires: '到期', ended: '结束', connection: '连接', labels: '标签', warnings: '警告', why: '原因', snapshot: '来自快照', running: (t) => `已运行 ${t}。`, atWork: (who) => `${who} 正在工作。`, failures: '最近失败', noFailures: '没有失败。', all: '在历史中查看', latest: '最近', nothing: '这里还没有记录。', now: '正在运行', noRunning: '现在没有运行中的操作。', activity: '活动', copyJson: '复制为 JSON' },
  history: {
    title: '历史', search: '筛选，或搜索命令、路径和输出', searchHint: 'status:failed  type:command  actor:  run:  thread:  path:  exit:1', group: '分组', groups: { run: '按运行', thread: '按会话', actor: '按执行者', hour: '按小时', none: '不分组' }, newest: '最新在前', oldest: '最早在前', export: '导出', reads: '读取', readsShown: '显示读取操作', readsHidden: '隐藏读取操作', failures: '失败', empty: '这里还没有记录。', emptyNext: '通过 Glassbox 做的一切会立即出现在这里。', nothing: '没有符合的结果。', clear: '清除筛选',
    filter: { type: '类型', status: '状态', actor: '执行者', run: '运行', thread: '会话', path: '路径', exit: '退出码', source: '来源', sandbox: '沙箱', since: '从', until: '到' }, removeFilter: (name) => `移除筛选 ${name}`, ops: (_, text) => `${text} 操作`, failed: (n) => `${n} 失败`, noRun: '无运行', run: '运行', thread: '会话', noActor: '未知', earlier: (n, failed) => `更早的 ${n} 个操作${failed ? `，${failed} 失败` : ''}`, fewer: '收起', loading: '正在加载更早的操作', end: '历史的开头', newOnes: (n) => `${n} 条新操作`, follow: '实时跟随',
    exit: (n) => `退出码 ${n}`, killed: '被终止', stoppedAt: (t) => `${t} 后停止`, files: (n) => `${n} 文件`, isNew: '新建', isBinary: '非文本', cut: '输出被截断', unknown: '结果未知', notRecorded: '没有记录', gap: '没有记录。', restarted: '记录器已重新启动。', strip: (n, failed, from, to) => `${n} 操作，${failed} 失败，${from} 至 ${to}`, lanes: { command: '命令', file: '文件', terminal: '终端', other: '其他' }, list: '操作', spoken: (n, failed) => `${n} 个新操作，${failed} 失败`,
    noMirror: '此服务器没有保存所有历史的副本，无法一起搜索。', noMirrorNext: '用 --mirror 启动。每个沙箱的历史在它自己的标签页中。', incomplete: '搜索超时，结果不满一页。', goOn: '继续', noSandbox: '所有沙箱', whole: '显示全部时间', range: (from, to) => `${from} 至 ${to}`,
  },
  commands: {
    line: '命令', placeholder: '运行命令', keys: 'Enter 运行，Shift Enter 换行，↑ 取出以前的命令', options: '文件夹、环境变量、时限', run: '运行', cwd: '文件夹', cwdHint: '留空：工作目录。', timeout: '时限（秒）', timeoutHint: '留空：不限。', timeoutWrong: '不是秒数。', envHint: '每行一个 NAME=value。值不会保留。', background: '在后台运行：无人观看也继续', stdin: '需要输入', reset: '重置',
    one: '命令及其输出', running: (n) => `正在运行 ${n}`, earlier: '以前的', older: '显示更早的', none: '这里还没有运行过命令。', notRunning: '沙箱没有运行。以前运行过的命令可以查看。', again: '再次运行', edit: '修改后运行', operation: '打开操作', stop: '停止', stopping: '正在停止', kill: '强制结束', input: '程序的输入', send: '发送', eof: '结束输入',
    lines: (n) => `${n} 行`, dropped: (n) => `显示最后 ${n} 行`, skipped: (n) => `有 ${n} 没有保留`, connecting: '正在连接', live: '实时', lost: '连接中断，正在重新连接，不会遗漏。', ended: '已结束',
  },
  terminal: {
    open: '新建终端', close: (no) => `关闭终端 ${no}`, closed: '终端将在 10 秒后结束', undo: '撤销', shell: 'shell', screen: '终端画面', past: '以前的', none: '没有打开的终端。打开的终端在离开后继续运行，并被记录。', needs: '只有操作员可以使用终端。', notRunning: '沙箱没有运行，里面没有终端。输入和显示过的内容在历史中。',
    recording: (t) => `正在记录 ${t}`, yours: '键盘在你手中', watching: '正在观看。键盘在别人手中。', take: '接管键盘', lost: '正在重新连接，输入不会丢失。', ended: (code) => (code < 0 ? '已结束' : `已结束，退出码 ${code}`), inHistory: '在历史中打开', find: '在画面中查找', missing: (n) => `有 ${n} 没有在这里显示，保留的部分在历史中。`,
    linkTitle: '打开此链接？', linkAsk: '它由沙箱中的程序写出，指向', linkDo: '打开链接',
  },
  kinds: { 'command.execute': '命令', 'file.read': '读取', 'file.write': '写入', 'file.list': '列出', 'file.delete': '删除', 'file.append': '追加', 'file.edit': '编辑', 'file.stat': '查看', 'file.mkdir': '新建目录', 'file.move': '移动', 'file.chmod': '修改权限', 'file.glob': '按名称查找', 'file.grep': '搜索', 'file.download': '下载', 'file.upload': '上传', 'terminal.session': '终端', 'sandbox.create': '创建沙箱', 'sandbox.delete': '删除沙箱', 'sandbox.pause': '暂停沙箱', 'sandbox.resume': '恢复沙箱', 'sandbox.renew': '续期', 'sandbox.metadata': '修改标签', 'sandbox.snapshot': '快照', 'recorder.restarted': '记录器重启', 'history.gap': '没有记录', 'network.connect': '网络连接' },
  details: {
    label: '详情', actor: '执行者', run: '运行', thread: '会话', took: '用时', started: '开始', folder: '目录', source: '来源', sandbox: '沙箱', output: '输出', changes: '改动', request: '请求', raw: '原始', previous: '上一个操作', next: '下一个操作', link: '复制链接', shell: '复制为命令', notIn: '不在当前筛选中', notFound: '这个操作已不再保留。', wrap: '自动换行', find: '在输出中查找', downloadOut: (name) => `下载 ${name}`, complete: (n) => `完整，${n}`, partly: '部分记录', cutNote: (n) => `不完整：保留了 ${n}`, stillRunning: '仍在运行', none: '没有输出。', notKept: '输出没有保留。', earlierOutput: '显示更早的输出', laterOutput: '显示更多输出', colours: '颜色', rawOutput: '原样',
    unified: '统一', sideBySide: '并排', noDiff: '没有可对比的文本。', diffCut: '差异被截断，或太大而没有生成。', created: '新建', changed: '修改', deleted: '删除', before: '之前', after: '之后', noChanges: '没有改动文件。', unknownChanges: '不知道它改动了哪些文件。', incomplete: (why) => `不完整：${why}`, together: '与其他操作同时进行，改动可能来自它们', environment: '环境变量，不保留值', limit: '时限', result: '结果', exitCode: '退出码', lines: (n) => `${n} 行`, moreFiles: (n) => `还有 ${n} 个`, mode: '权限',
  },
  exporting: { title: '导出', what: '导出筛选出的全部内容，包括更早的。', format: '格式', json: 'JSON', jsonl: 'JSON，每行一个', csv: 'CSV，用于表格', go: '导出', progress: (n) => `已有 ${n} 个操作`, done: (n) => `已导出 ${n} 个操作` },
  palette: { title: '搜索与命令', placeholder: '查找沙箱、页面或操作', searchAll: (q) => `在全部历史中搜索“${q}”`, none: '没有这个名称。', page: '页面', sandbox: '沙箱', action: '操作', theme: '切换主题', language: '切换到英文', keys: '按键' },
  keys: { title: '按键', palette: '搜索与命令', filter: '筛选', next: '下一个', previous: '上一个', open: '打开', close: '返回一步', select: '选择', create: '新建沙箱', failures: '只看失败', group: '切换分组', order: '翻转顺序', copy: '复制链接', nextFailure: '下一个失败', help: '这个列表', rail: '收起侧栏', live: '实时' },
  connections: {
    title: '连接', add: '添加服务', name: '名称', endpoint: '地址', state: '状态', sandboxes: '沙箱', local: '本机', key: '密钥', keyHint: '加密保存，不再显示。', keyKeep: '留空则不变。', proxy: '经由服务访问沙箱', proxyHint: '关闭：此服务器直接访问沙箱地址。', enabled: '启用', answering: '有响应', disabled: '已停用', silent: (ago) => `已 ${ago}无响应`, never: '尚无响应', test: '测试', testing: '测试中', testOk: (version, ms, n) => `${ms} 内响应${version ? `，版本 ${version}` : ''}，${n} 个沙箱`, edit: '编辑连接', addTitle: '添加服务', addDo: '添加连接', saveDo: '保存连接',
    remove: '移除连接', removeTitle: (name) => `移除 ${name}`, removeAsk: '它的沙箱继续运行，已镜像的内容保留。此服务器只是不再知道如何访问它们。', removed: (name) => `已移除 ${name}`, saved: (name) => `已保存 ${name}`, changedMeanwhile: '此连接已被他人修改，已重新读取。', menu: (name) => `${name} 的操作`,
  },
  settings: {
    title: '设置', account: '账户', tokens: '令牌', signIns: '登录', users: '用户', parts: '设置的各部分', you: '你', role: '角色', via: '登录方式', version: '服务器版本', password: '密码', passwordNone: '你没有密码，通过链接登录。', passwordHas: '你有密码。', current: '当前密码', next: '新密码', passwordDo: '修改密码', passwordSet: '设置密码', passwordDone: '密码已修改，你的其他浏览器已退出', via_link: '链接', via_password: '密码', via_token: '令牌',
    tokenNew: '新建令牌', tokenName: '名称', tokenLife: '有效期', tokenScopes: '允许', tokenDo: '创建令牌', tokenOnce: '只显示这一次。以 Authorization: Bearer … 发送', tokenNone: '还没有令牌。程序需要令牌才能使用此服务器。', tokenUsed: (at) => `${at} 使用过`, tokenUnused: '从未使用', until: (at) => `有效至 ${at}`, revoke: '撤销', revokeTitle: (name) => `撤销 ${name}`, revokeAsk: '使用它的程序从现在起会被拒绝。', revokeDo: '撤销令牌', revoked: (name) => `已撤销 ${name}`, everybody: '所有人的', signInHere: '此浏览器', signInEnd: '退出登录', signInEnded: '该浏览器已退出', seen: (at) => `${at} 活动过`,
    userNew: '新建用户', userName: '名称', userDo: '创建用户', userPassword: '密码', userPasswordHint: '留空：只能通过链接登录。', userLink: '登录链接', userLinkTitle: (name) => `${name} 的登录链接`, userLinkOnce: '只能用一次，15 分钟内有效。', userDisable: '停用', userEnable: '启用', userDisabled: '已停用', userRemove: '移除用户', userRemoveTitle: (name) => `移除 ${name}`, userRemoveAsk: '该用户的令牌会一并移除，历史保留。', userRemoved: (name) => `已移除 ${name}`, userSaved: (name) => `已保存 ${name}`, hasPassword: '有密码', linkOnly: '仅链接',
    scopes: { 'sandboxes:read': '查看沙箱', 'sandboxes:write': '创建和结束沙箱', 'history:read': '读取历史', 'connections:read': '查看连接', 'connections:write': '修改连接', admin: '管理员的一切' },
  },
}
