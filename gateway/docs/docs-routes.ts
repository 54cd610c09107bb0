import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import fastify, {
  type FastifyInstance,
  type FastifyPluginAsync,
  type LightMyRequestResponse,
  type onRequestHookHandler,
} from 'fastify'
import { escapeHtml } from '../../contract/html.ts'
import { WIDGET_PREFIX } from '../../contract/public-api.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import { asOpenApi31 } from './api-document.ts'
import steps from './getting-started.json' with { type: 'json' }

const DOCS_PREFIX = '/docs'
const SCRIPT_MAX_AGE = 3600
/** Level 9 compresses 4 MB in half a second. Level 11 takes 9 s for 10 % less. */
const SCRIPT_BROTLI_QUALITY = 9
/** Size of the pieces of the script. For a client that does not read, the process buffers one piece. */
const PIECE_BYTES = 65_536

/** Runs in the browser, so it uses no other code of this module. Scripts cannot set `Origin`. */
const sendDocsOrigin = ({ requestBuilder }: { requestBuilder: { headers: Headers } }) => {
  const origin = requestBuilder.headers.get('Origin')
  if (origin) requestBuilder.headers.set('X-Docs-Origin', origin)
}

/**
 * GET /docs/: the API reference, /docs/getting-started, /docs/openapi.json, and /docs/openapi-3.1.json for
 * tools that do not read 3.2.
 */
export const docsRoutes: FastifyPluginAsync = async (app) => {
  let reference: Promise<FastifyInstance> | undefined
  const encoded = new Map<Encoding, Promise<Buffer>>()
  /** Answers by path, at most 8, because a path has many spellings. Clients that read slowly share the bytes. */
  const found = createLruCache<LightMyRequestResponse>(8)
  let openApi31: Buffer | undefined
  app.addHook('onSend', async (request, reply, payload) => {
    const type = String(reply.getHeader('content-type') ?? '')
    if (type.startsWith('text/html')) reply.header('content-security-policy', pagePolicy(String(payload)))
    const script = request.url.endsWith('.js')
    reply.header('cache-control', script ? `public, max-age=${SCRIPT_MAX_AGE}` : 'no-cache')
    if (!script) return payload
    reply.header('vary', 'accept-encoding')
    const encoding = acceptedEncoding(request.headers['accept-encoding'])
    if (encoding !== 'identity') reply.header('content-encoding', encoding)
    if (!encoded.has(encoding)) encoded.set(encoding, encode[encoding](String(payload)))
    const bytes = await encoded.get(encoding)!
    reply.header('content-length', bytes.length)
    return Readable.from(pieces(bytes), { objectMode: false, highWaterMark: PIECE_BYTES })
  })
  app.get(`${DOCS_PREFIX}/getting-started`, { schema: { hide: true } }, async ({ protocol, host }, reply) =>
    reply.type('text/html; charset=utf-8').send(gettingStartedPage(`${protocol}://${host}`)),
  )
  app.get(`${DOCS_PREFIX}/openapi-3.1.json`, { schema: { hide: true } }, async (_request, reply) => {
    openApi31 ??= Buffer.from(JSON.stringify(asOpenApi31(app.swagger())))
    return reply.type('application/json; charset=utf-8').send(openApi31)
  })
  for (const path of ['', '/*'])
    app.get(`${DOCS_PREFIX}${path}`, { schema: { hide: true } }, async ({ url }, reply) => {
      reference ??= startReference(app)
      const path = url.split('?', 1)[0]!
      const answer = found.get(path) ?? (await (await reference).inject(url))
      const { statusCode, headers, payload, rawPayload } = answer
      if (statusCode === 200 && !path.endsWith('.js')) found.set(path, answer)
      for (const name of ['content-type', 'location'] as const) if (headers[name]) reply.header(name, headers[name])
      // With an empty buffer, Fastify would add the type `application/octet-stream`.
      return reply.code(statusCode).send(statusCode === 200 ? rawPayload : payload)
    })
}

/** Loads the reference at the first request, because it keeps 17 MB of text in memory. */
async function startReference(gateway: FastifyInstance): Promise<FastifyInstance> {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const app = fastify()
  await app.register(reference, {
    routePrefix: DOCS_PREFIX,
    configuration: {
      content: () => gateway.swagger(),
      pageTitle: 'Service widget API',
      onBeforeRequest: sendDocsOrigin,
      defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
      withDefaultFonts: false,
      telemetry: false,
      // The page would list libraries in Ruby, PHP and others, which do not exist.
      hiddenClients: true,
      hideClientButton: true,
      showDeveloperTools: 'never',
      mcp: { disabled: true },
      agent: { disabled: true },
    },
  })
  return app
}

type Encoding = keyof typeof encode

const encode = {
  identity: async (text: string) => Buffer.from(text),
  br: (text: string) =>
    promisify(brotliCompress)(text, { params: { [constants.BROTLI_PARAM_QUALITY]: SCRIPT_BROTLI_QUALITY } }),
  gzip: (text: string) => promisify(gzip)(text),
}

function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
}

const acceptedEncoding = (accepted = '') =>
  (['br', 'gzip'] as const).find((encoding) =>
    accepted.split(',').some((each) => {
      const [name, quality = ''] = each.split(';').map((part) => part.trim())
      return name === encoding && !/^q=0(\.0*)?$/.test(quality)
    }),
  ) ?? 'identity'

/** Returns a policy that allows the reference's scripts and calls to this gateway. */
function pagePolicy(html: string) {
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

/** Uses the origin that the reader entered. Browsers send `same-origin` only for pages of this host. */
export const useDocsOrigin: onRequestHookHandler = ({ headers }, _reply, done) => {
  const origin = headers['x-docs-origin']
  if (typeof origin === 'string' && headers['sec-fetch-site'] === 'same-origin') headers.origin = origin
  done()
}

const style = `
  body { max-width: 46rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; font: 16px/1.55 system-ui, sans-serif; color-scheme: light dark; }
  pre { overflow-x: auto; padding: 0.9rem 1rem; border-radius: 8px; background: light-dark(#f0f3f2, #1f2624); font-size: 14px; }
  h2 { margin-top: 2rem; font-size: 1.15rem; }
  a { color: light-dark(#0b6b53, #6fd3b5); }
`

function gettingStartedPage(gateway: string): string {
  const values: Record<string, string> = {
    gateway,
    api: `${gateway}${WIDGET_PREFIX}`,
    headers: `-H "Origin: $SITE" -H 'X-Service-Widget-Version: 1.0'`,
    json: `-H 'Content-Type: application/json'`,
  }
  const shown = (text: string) => escapeHtml(text.replace(/\{(\w+)\}/g, (place, name: string) => values[name] ?? place))
  const sections = steps.map(({ title, text, code }, index) => {
    const commands = code && `\n<pre tabindex="0"><code>${shown(code.join('\n'))}</code></pre>`
    return `<h2>${index + 1}. ${title}</h2>\n<p>${shown(text)}</p>${commands ?? ''}`
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Getting started</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>Getting started</h1>
<p>From an empty page to a conversation. The commands call this gateway, ${escapeHtml(gateway)}. All calls are in the <a href="/docs/">API reference</a>.</p>
${sections.join('\n')}
</main>
</body>
</html>
`
}
