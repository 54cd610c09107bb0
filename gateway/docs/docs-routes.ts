import { createHash } from 'node:crypto'
import type { FastifyPluginAsync, onRequestHookHandler } from 'fastify'

const DOCS_PREFIX = '/docs'
const SCRIPT_MAX_AGE = 3600

/**
 * Runs in the browser, so it must not use other code of this module. Scripts cannot set the
 * `Origin` header, so the page sends the origin in another header.
 */
const sendDocsOrigin = ({ requestBuilder }: { requestBuilder: { headers: Headers } }) => {
  const origin = requestBuilder.headers.get('Origin')
  if (origin) requestBuilder.headers.set('X-Docs-Origin', origin)
}

/** GET /docs/: the API reference, and /docs/openapi.json. All assets come from this gateway. */
export const docsRoutes: FastifyPluginAsync = async (app) => {
  // A dynamic import, because the module contains a script of 4 MB.
  const { default: reference } = await import('@scalar/fastify-api-reference')
  app.addHook('onSend', async (request, reply, payload) => {
    const type = String(reply.getHeader('content-type') ?? '')
    if (type.startsWith('text/html')) reply.header('content-security-policy', pagePolicy(String(payload)))
    const script = request.url.endsWith('.js')
    reply.header('cache-control', script ? `public, max-age=${SCRIPT_MAX_AGE}` : 'no-cache')
  })
  await app.register(reference, {
    routePrefix: DOCS_PREFIX,
    configuration: {
      pageTitle: 'Service widget API',
      onBeforeRequest: sendDocsOrigin,
      defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
      withDefaultFonts: false,
      telemetry: false,
      hideClientButton: true,
      showDeveloperTools: 'never',
      mcp: { disabled: true },
      agent: { disabled: true },
    },
  })
}

/** Returns a policy that allows the reference's scripts and calls to this gateway. */
function pagePolicy(html: string): string {
  const inline = [...html.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)].map(([, source = '']) => source)
  const hashes = inline
    .filter((source) => source !== '')
    .map((source) => `'sha256-${createHash('sha256').update(source).digest('base64')}'`)
  return [
    "default-src 'none'",
    `script-src 'self' ${hashes.join(' ')}`,
    // The script of the API reference injects inline styles.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

/**
 * Treats a request of the docs page as coming from the origin that the reader enters there. Other
 * pages cannot use this: browsers set `Sec-Fetch-Site` themselves, and they set it to `same-origin`
 * only for pages of this host.
 */
export const useDocsOrigin: onRequestHookHandler = ({ headers }, _reply, done) => {
  const origin = headers['x-docs-origin']
  if (typeof origin === 'string' && headers['sec-fetch-site'] === 'same-origin') headers.origin = origin
  done()
}
