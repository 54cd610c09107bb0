import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createAssertionSigner, type IdentitySecret } from './identity-assertions.ts'
import { createShopActions } from './shop-actions.ts'
import { renderShop } from './shop-pages.ts'
import { createShopSessions } from './shop-sessions.ts'
import { readSiteFiles } from './site-files.ts'

export interface DemoSiteOptions {
  /** Origin of the gateway, as the browser reaches it. */
  gatewayUrl: string
  /** The installation that allows the demo site's origin. */
  siteKey: string
  /** The installation's identity secret: with it the shop's backend tells the chat who is signed in. Never reaches a page. */
  identity?: IdentitySecret
  /** A command line that answers as an agent, for the page to show. */
  agentCommand?: string
}

/**
 * A small shop with the widget on it, as a customer of the service would have it: another origin than the gateway's, sessions
 * and a cookie of its own, and a Content-Security-Policy without any exception for the widget but `connect-src`. The caller
 * lets the server listen, and closes it.
 */
export async function createDemoSite({
  gatewayUrl,
  siteKey,
  identity,
  agentCommand,
}: DemoSiteOptions): Promise<Server> {
  const gatewayOrigin = new URL(gatewayUrl).origin
  const files = await readSiteFiles()
  const sessions = createShopSessions()
  const signAssertion = identity && createAssertionSigner(identity, siteKey)
  const act = createShopActions({ sessions, signAssertion })
  const facts = { siteKey, gatewayUrl: gatewayOrigin, agentCommand, signsIdentity: signAssertion !== undefined }
  const policy = contentSecurityPolicy(gatewayOrigin)

  return createServer((request, response) => {
    answer(request, response).catch(() => {
      if (!response.headersSent) response.writeHead(500, { 'Content-Type': 'text/plain' })
      response.end()
    })
  })

  async function answer(request: IncomingMessage, response: ServerResponse) {
    response.setHeader('Content-Security-Policy', policy)
    response.setHeader('X-Content-Type-Options', 'nosniff')
    response.setHeader('Referrer-Policy', 'strict-origin-when-cross-origin')
    response.setHeader('Cache-Control', 'no-cache')
    const target = request.url ?? '/'
    const base = 'http://shop.invalid'
    if (!target.startsWith('/') || !URL.canParse(base + target)) return void response.writeHead(400).end()
    const url = new URL(base + target)
    if (request.method === 'POST' && (await act(url.pathname, request, response))) return
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return void response.writeHead(405, { Allow: 'GET, HEAD' }).end()
    const file = files.get(url.pathname)
    if (file) return send(request, response, 200, file)
    const { status, document } = renderShop(url, sessions.find(request), facts)
    response.setHeader('Vary', 'Cookie')
    response.setHeader('Cache-Control', 'private, no-cache')
    send(request, response, status, { type: 'text/html; charset=utf-8', content: Buffer.from(document) })
  }
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  { type, content }: { type: string; content: Buffer },
) {
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': content.length })
  response.end(request.method === 'HEAD' ? undefined : content)
}

function contentSecurityPolicy(gatewayOrigin: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `connect-src 'self' ${gatewayOrigin}`,
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}
