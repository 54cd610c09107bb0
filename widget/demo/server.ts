import { readdir, readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { extname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { buildWidgetIfStale, widgetDist } from '../build.ts'
import { createShopSessions, findCustomer } from './customers.ts'
import { createAssertionSigner, type IdentitySecret } from './identity-assertions.ts'
import { findPage, type PageSettings } from './page.ts'

interface DemoSiteOptions {
  /** Origin of the gateway as seen from the browser. */
  gatewayUrl: string
  /** Site key of an installation that allows the demo site's origin. */
  siteKey: string
  /** Signs assertions about the signed-in customer. Never sent to a page. */
  identity?: IdentitySecret
  /** Shell command that replies to the visitor as an agent. The workbench shows this command. */
  agentCommand?: string
}

type Action = (request: IncomingMessage, response: ServerResponse) => unknown

const siteFolder = join(import.meta.dirname, 'site')
const maxFormBytes = 8_192
const contentTypes: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/**
 * Creates a small shop with the widget, as a customer of the service would build it. It has its own
 * origin, its own sessions and a Content-Security-Policy. For the widget, the policy needs only an
 * additional `connect-src`. The caller starts and closes the server.
 */
export async function createDemoSite({
  gatewayUrl,
  siteKey,
  identity,
  agentCommand,
}: DemoSiteOptions): Promise<Server> {
  await buildWidgetIfStale()
  const files = new Map([...(await readFiles(siteFolder)), ...(await readFiles(widgetDist))])
  const sessions = createShopSessions()
  const signAssertion = identity && createAssertionSigner(identity, siteKey)
  const settings: PageSettings = {
    siteKey,
    gatewayUrl: new URL(gatewayUrl).origin,
    agentCommand,
    signsIdentity: signAssertion !== undefined,
  }
  const headers = {
    'Content-Security-Policy': contentSecurityPolicy(settings.gatewayUrl),
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'strict-origin-when-cross-origin',
    'Cache-Control': 'private, no-cache',
    Vary: 'Cookie',
  }
  const actions: Record<string, Action | undefined> = {
    async '/account/sign-in'(request, response) {
      if (!(Number(request.headers['content-length']) <= maxFormBytes)) return response.writeHead(413).end()
      const customer = findCustomer(new URLSearchParams(await text(request)).get('customer'))
      if (customer) sessions.change(request, response, customer)
      response.writeHead(303, { Location: '/account' }).end()
    },
    '/account/sign-out'(request, response) {
      sessions.change(request, response, undefined)
      response.writeHead(303, { Location: '/account' }).end()
    },
    async '/identity-assertion'(request, response) {
      const customer = sessions.find(request)
      response.setHeader('Cache-Control', 'no-store')
      if (!customer || !signAssertion) return response.writeHead(204).end()
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify({ assertion: await signAssertion(customer) }))
    },
  }

  return createServer((request, response) => {
    answer(request, response).catch(() => response.destroy())
  })

  async function answer(request: IncomingMessage, response: ServerResponse) {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    const path = request.url!.split('?')[0]!
    const action = request.method === 'POST' && actions[path]
    if (action) return isFromOwnPage(request) ? action(request, response) : response.writeHead(403).end()
    if (request.method !== 'GET' && request.method !== 'HEAD') return response.writeHead(405).end()
    const { status, type, content } = files.get(path) ?? findPage(path, sessions.find(request), settings)
    response.writeHead(status, { 'Content-Type': type }).end(request.method === 'HEAD' ? undefined : content)
  }
}

/** Scripts can set neither `Origin` nor `Sec-Fetch-Site`. */
function isFromOwnPage({ headers: { host, origin, 'sec-fetch-site': site } }: IncomingMessage) {
  return site === undefined ? URL.parse(origin ?? '')?.host === host : site === 'same-origin'
}

/** Reads the files of a folder. Returns a map from their path in the shop to their content. */
async function readFiles(folder: string) {
  const files = new Map<string, { status: number; type: string; content: Buffer }>()
  for (const name of await readdir(folder, { recursive: true })) {
    const type = contentTypes[extname(name)]
    if (type && !name.startsWith('.'))
      files.set(`/${name.replaceAll('\\', '/')}`, { status: 200, type, content: await readFile(join(folder, name)) })
  }
  return files
}

function contentSecurityPolicy(gatewayOrigin: string) {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `connect-src 'self' ${gatewayOrigin}`,
    `img-src 'self' data: ${gatewayOrigin}`,
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}
