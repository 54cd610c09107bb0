import { createHash } from 'node:crypto'
import type { FastifyPluginAsync, onRequestHookHandler } from 'fastify'

const DOCS_PREFIX = '/docs'
const SCRIPT_MAX_AGE = 3600

/** Runs in the page, so it uses nothing from here: browsers let no script name an `Origin`, so it goes by another name. */
const nameOrigin = ({ requestBuilder }: { requestBuilder: { headers: Headers } }) => {
  const origin = requestBuilder.headers.get('Origin')
  if (origin) requestBuilder.headers.set('X-Docs-Origin', origin)
}

/** GET /docs/: a page to read the API and try it, and /docs/openapi.json. Everything comes from this gateway. */
export const docsRoutes: FastifyPluginAsync = async (app) => {
  // Imported where it is used: its page's script is 4 MB, which a gateway without the page has no need of.
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
      onBeforeRequest: nameOrigin,
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

/** What the page may do: run its own script and the one inline script that starts it, and talk to this gateway. */
function pagePolicy(html: string): string {
  const inline = [...html.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)].map(([, source = '']) => source)
  const hashes = inline
    .filter((source) => source !== '')
    .map((source) => `'sha256-${createHash('sha256').update(source).digest('base64')}'`)
  return [
    "default-src 'none'",
    `script-src 'self' ${hashes.join(' ')}`,
    // The reference writes its styles from its script.
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
 * A request that the page of the docs sends counts as one of the origin that its reader names. Only that page can send it:
 * browsers write `Sec-Fetch-Site` themselves, and write `same-origin` for no page of another host.
 */
export const takeNamedOrigin: onRequestHookHandler = ({ headers }, _reply, done) => {
  const origin = headers['x-docs-origin']
  if (typeof origin === 'string' && headers['sec-fetch-site'] === 'same-origin') headers.origin = origin
  done()
}
