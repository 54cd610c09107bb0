import { readdir, readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildWidgetIfStale, widgetDist } from '../build.ts'

const siteFolder = fileURLToPath(new URL('site/', import.meta.url))

export interface DemoSiteOptions {
  /** Origin of the gateway, as the browser reaches it. */
  gatewayUrl: string
  /** The installation that allows the demo site's origin. */
  siteKey: string
}

/**
 * A small shop with the widget on it, as a customer of the service would have it: another origin than the gateway's, and a
 * Content-Security-Policy without any exception for the widget but `connect-src`. Builds the widget where its built file is
 * missing or old. The caller lets the server listen, and closes it.
 */
export async function createDemoSite({ gatewayUrl, siteKey }: DemoSiteOptions): Promise<Server> {
  await buildWidgetIfStale()
  const page = (await readFile(join(siteFolder, 'index.html'), 'utf8'))
    .replaceAll('{{siteKey}}', escapeAttribute(siteKey))
    .replaceAll('{{gatewayUrl}}', escapeAttribute(new URL(gatewayUrl).origin))
  const files = new Map([
    ['/', { type: 'text/html; charset=utf-8', content: Buffer.from(page) }],
    ['/styles.css', { type: 'text/css; charset=utf-8', content: await readFile(join(siteFolder, 'styles.css')) }],
    ['/shop.js', { type: 'text/javascript; charset=utf-8', content: await readFile(join(siteFolder, 'shop.js')) }],
    ['/favicon.svg', { type: 'image/svg+xml', content: await readFile(join(siteFolder, 'favicon.svg')) }],
    ['/widget.js', { type: 'text/javascript; charset=utf-8', content: await readFile(join(widgetDist, 'widget.js')) }],
  ])
  for (const name of await readdir(join(widgetDist, 'widget'))) {
    const content = await readFile(join(widgetDist, 'widget', name))
    files.set(`/widget/${name}`, { type: 'text/javascript; charset=utf-8', content })
  }
  const policy = contentSecurityPolicy(new URL(gatewayUrl).origin)

  return createServer((request, response) => {
    response.setHeader('Content-Security-Policy', policy)
    response.setHeader('X-Content-Type-Options', 'nosniff')
    response.setHeader('Referrer-Policy', 'strict-origin-when-cross-origin')
    response.setHeader('Cache-Control', 'no-cache')
    const file = files.get((request.url ?? '/').split('?')[0]!)
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return response.writeHead(405, { Allow: 'GET, HEAD' }).end()
    if (!file) return response.writeHead(404, { 'Content-Type': 'text/plain' }).end('Not found')
    response.writeHead(200, { 'Content-Type': file.type, 'Content-Length': file.content.length })
    response.end(request.method === 'HEAD' ? undefined : file.content)
  })
}

function contentSecurityPolicy(gatewayOrigin: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `connect-src 'self' ${gatewayOrigin}`,
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

function escapeAttribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
}
