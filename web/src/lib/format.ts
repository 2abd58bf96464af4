// Times and numbers, the same everywhere.
export type Lang = 'en' | 'zh'

const two = (n: number) => String(n).padStart(2, '0')
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const

export function clock(at: Date, millis = false): string {
  const text = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
  return millis ? `${text}.${String(at.getMilliseconds()).padStart(3, '0')}` : text
}

function day(at: Date, lang: Lang): string {
  return lang === 'zh' ? `${at.getMonth() + 1} 月 ${at.getDate()} 日` : `${at.getDate()} ${months[at.getMonth()]}`
}

// moment tells the time of today, else the day too, else the year too.
export function moment(text: string, lang: Lang, now = new Date()): string {
  const at = new Date(text)
  if (Number.isNaN(at.getTime())) return '—'
  if (at.toDateString() === now.toDateString()) return clock(at)
  const hour = `${two(at.getHours())}:${two(at.getMinutes())}`
  if (at.getFullYear() === now.getFullYear()) return `${day(at, lang)} ${hour}`
  return lang === 'zh' ? `${at.getFullYear()} 年 ${day(at, lang)} ${hour}` : `${day(at, lang)} ${at.getFullYear()} ${hour}`
}

const units = {
  en: { ms: ' ms', s: ' s', min: ' min', h: ' h', d: ' days' },
  zh: { ms: ' 毫秒', s: ' 秒', min: ' 分', h: ' 小时', d: ' 天' },
} as const

// span tells a duration, in three digits at most.
export function span(ms: number, lang: Lang): string {
  const u = units[lang]
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}${u.ms}`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)}${u.s}`
  const s = Math.round(ms / 1000)
  if (s < 3600) return s % 60 ? `${Math.floor(s / 60)}${u.min} ${s % 60}${u.s}` : `${s / 60}${u.min}`
  const min = Math.round(s / 60)
  if (min < 2880) return min % 60 ? `${Math.floor(min / 60)}${u.h} ${min % 60}${u.min}` : `${min / 60}${u.h}`
  return `${Math.round(min / 1440)}${u.d}`
}

// age tells how long ago, or how long still, in one unit.
export function age(ms: number, lang: Lang): string {
  const u = units[lang]
  if (ms < 60_000) return `${Math.max(0, Math.round(ms / 1000))}${u.s}`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)}${u.min}`
  if (ms < 86_400_000) {
    const min = Math.round(ms / 60_000)
    return min % 60 ? `${Math.floor(min / 60)}${u.h} ${min % 60}${u.min}` : `${min / 60}${u.h}`
  }
  return `${Math.round(ms / 86_400_000)}${u.d}`
}

export const count = (n: number) => n.toLocaleString('en-US')

export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  let n = bytes
  for (const unit of ['kB', 'MB', 'GB', 'TB']) {
    n /= 1000
    if (n < 999.5) return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${unit}`
  }
  return `${Math.round(n)} TB`
}

export const short = (id: string) => id.replaceAll('-', '').slice(-6)

// shortRun keeps what people write themselves, and cuts what machines make.
export const shortRun = (id: string) => (id.length <= 16 ? id : id.slice(0, 8))
