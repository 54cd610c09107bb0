import { createServer, type Server } from 'node:http'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import type { ScenarioServer } from '../../widget/test/scenario-server.ts'
import type { SiteKey } from '../../widget/test/scenarios.ts'
import { listen } from './listen.ts'

const preChat = {
  fields: [
    { name: 'name', label: 'Your name', type: 'text', required: false, maxLength: 100 },
    { name: 'email', label: 'Email address', type: 'email', required: true, maxLength: 254 },
    { name: 'question', label: 'What is it about?', type: 'textarea', required: false, maxLength: 500 },
  ],
}
const offline = { fields: [{ name: 'email', label: 'Email address', type: 'email', required: true, maxLength: 254 }] }
export const withPreChat = { capabilities: { preChatForm: true }, forms: { preChat } }
export const withOffline = { capabilities: { offlineForm: true }, forms: { offline }, availability: { online: false } }
export const withRequests = { capabilities: { typing: true, navigation: true, screenshots: true } }

export const inWidget = (page: Page, selector: string) => page.locator(`[data-service-widget] ${selector}`)

export interface WidgetPageOptions {
  browser: Browser
  /** Scenario server: a simulated gateway that also serves the widget's files. */
  gateway: ScenarioServer
  siteKey?: SiteKey
  /** URL path of the script; `/widget.js` if missing. */
  script?: string
  /** Additional attributes of the script element, such as `data-locale="de"`. */
  attributes?: string
  lang?: string
  dir?: string
  head?: string
  body?: string
  /**
   * Script of the host page, served from the page's own origin. By default it runs before the
   * widget's script. With `module` or `defer`, it stands behind that script and runs after it.
   */
  pageScript?: string
  pageScriptKind?: 'module' | 'defer'
  context?: BrowserContextOptions
}

export interface WidgetPage {
  page: Page
  context: BrowserContext
  url: string
  /** Errors, warnings and policy violations that the page logged. */
  complaints: string[]
  close(): Promise<void>
}

/**
 * Opens a page on a separate origin with the widget's script tag. The page enforces Trusted Types
 * and the strictest content security policy that allows the widget's script.
 */
export async function openWidgetPage(options: WidgetPageOptions): Promise<WidgetPage> {
  const { browser } = options
  const server = createPageServer(options)
  const { url: origin, close } = await listen(server)
  const url = `${origin}/`
  const context = await browser.newContext(options.context)
  // A busy machine needs longer than the default of 30 s.
  context.setDefaultTimeout(90_000)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.addInitScript({
    content: `addEventListener('securitypolicyviolation', (event) => {
      console.error('CSP: ' + event.violatedDirective + ' ' + event.blockedURI)
    })`,
  })
  await page.goto(url)
  return {
    page,
    context,
    url,
    complaints,
    async close() {
      await context.close()
      await close()
    },
  }
}

/** The server of such a page, for any browser. */
export function createPageServer({
  gateway,
  siteKey = 'pk_friendly',
  script = '/widget.js',
  attributes = '',
  lang = 'en',
  dir = 'ltr',
  pageScriptKind,
  ...options
}: Omit<WidgetPageOptions, 'browser'>): Server {
  const kinds = { module: 'type="module"', defer: 'defer' }
  const late = pageScriptKind && `<script src="/page.js" ${kinds[pageScriptKind]}></script>`
  const html = `<!doctype html><html lang="${lang}" dir="${dir}"><head><meta charset="utf-8"><title>A page</title>
    <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
    ${options.head ?? ''}${late ? '' : '<script src="/page.js"></script>'}
    <script src="${gateway.url}${script}" data-site-key="${siteKey}" ${attributes} defer></script>${late ?? ''}</head>
    <body><header><p>A shop</p></header><nav aria-label="Shop"><a href="/">Lamps</a></nav>
    <main><h1>A page</h1>${options.body ?? '<p>With a chat on it.</p>'}</main>
    <aside aria-label="Offers"><p>An offer</p></aside><footer><p>Imprint</p></footer></body></html>`
  const policy = [
    "default-src 'none'",
    `script-src 'self' ${gateway.url}`,
    `connect-src ${gateway.url}${late ? " 'self'" : ''}`,
    ...(options.head ? ["style-src 'unsafe-inline'"] : []),
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
  return createServer((request, response) => {
    const isScript = request.url === '/page.js'
    response.writeHead(200, {
      'Content-Type': `${isScript ? 'text/javascript' : 'text/html'}; charset=utf-8`,
      'Content-Security-Policy': policy,
    })
    response.end(isScript ? (options.pageScript ?? '') : html)
  })
}

export async function say(page: Page, text: string) {
  await inWidget(page, '.field').fill(text)
  await page.keyboard.press('Enter')
}
