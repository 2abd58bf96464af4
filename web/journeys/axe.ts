import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

type Found = { id: string; impact: string | null; nodes: { html: string }[] }

// Axe looks at a page as it is. The page's policy lets no script in but
// its own, so axe comes as the debugger does.
export class Axe {
  readonly page: Page
  constructor(page: Page) {
    this.page = page
  }

  async serious(): Promise<string[]> {
    await this.page.evaluate(source)
    const found: Found[] = await this.page.evaluate('axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"] }).then((all) => all.violations)')
    return found.filter((one) => one.impact === 'serious' || one.impact === 'critical').map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(' | ')}`)
  }
}
