import { stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import serveStatic from '@fastify/static'
import type { FastifyError, FastifyInstance, FastifyPluginAsync } from 'fastify'
import { GatewayError, toGatewayError } from '../errors.ts'
import { sendFailure } from '../http/failures.ts'

export interface StaticFolders {
  /** Folder of `index.html` and hashed files. */
  console?: string
  /** Folder of `widget.js`, `widget.json`, and files that never change below `widget/v1/<hash>/`. */
  widget?: string
}

const builtIn = (part: string) => join(import.meta.dirname, '../..', part, 'dist')
/** The folders that `npm run build` writes. */
export const builtFolders: StaticFolders = { console: builtIn('console'), widget: builtIn('widget') }

const CONSOLE_PREFIX = '/console'
const FOREVER = 'public, max-age=31536000, immutable'
const SHORT = 'public, max-age=300'
/** A path with a content hash: `assets/main-DRGmszWJ.js` or `widget/v1/7ce736f73bc5dfd4/chat.js`. */
const HASHED = /[-.][\w-]{8}\.\w{1,8}$|^widget\/v1\/[0-9a-f]{16}\//

/** The console may load files of this gateway, call it and show fetched screenshots. */
const CONSOLE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "require-trusted-types-for 'script'",
  'trusted-types service-worker',
].join('; ')

/** GET /console/…: files of the console. Paths without an extension serve its page (client-side routing). */
export const consoleRoutes: FastifyPluginAsync<{ folder: string }> = async (app, { folder }) => {
  const isBuilt = () =>
    stat(join(folder, 'index.html')).then(
      (found) => found.isFile(),
      () => false,
    )
  await serveFolder(app, folder)
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('content-security-policy', CONSOLE_POLICY)
    reply.header('cross-origin-opener-policy', 'same-origin')
    reply.header('cross-origin-resource-policy', 'same-origin')
  })
  app.get(CONSOLE_PREFIX, (_request, reply) => reply.redirect(`${CONSOLE_PREFIX}/`, 308))
  app.get<{ Params: { '*': string } }>(`${CONSOLE_PREFIX}/*`, async (request, reply) => {
    const path = request.params['*']
    if (extname(path) !== '') {
      const caching = path === 'sw.js' ? 'no-cache' : cacheControlOf(path)
      return reply.header('cache-control', caching).sendFile(path)
    }
    if (await isBuilt()) return reply.header('cache-control', 'no-cache').sendFile('index.html')
    return reply
      .code(404)
      .header('cache-control', 'no-store')
      .type('text/plain; charset=utf-8')
      .send('The console is not built. Run `npm run build` and reload.\n')
  })
}

/** GET /widget.js, /widget.json and /widget/…: files of the widget, which every origin may load. */
export const widgetFileRoutes: FastifyPluginAsync<{ folder: string }> = async (app, { folder }) => {
  await serveFolder(app, folder)
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('access-control-allow-origin', '*')
  })
  for (const name of ['widget.js', 'widget.json'])
    app.get(`/${name}`, (_request, reply) => reply.header('cache-control', SHORT).sendFile(name))
  app.get<{ Params: { '*': string } }>('/widget/*', (request, reply) => {
    const path = `widget/${request.params['*']}`
    return reply.header('cache-control', cacheControlOf(path)).sendFile(path)
  })
}

async function serveFolder(app: FastifyInstance, root: string) {
  // Path traversal and malformed paths get `NotFound`.
  app.setErrorHandler(async (error: FastifyError, _request, reply) => {
    const refused = !(error instanceof GatewayError) && (error.statusCode ?? 500) < 500
    return sendFailure(refused ? new GatewayError('NotFound') : toGatewayError(error), reply)
  })
  await app.register(serveStatic, {
    root,
    serve: false,
    index: false,
    dotfiles: 'ignore',
    cacheControl: false,
    acceptRanges: false,
    preCompressed: true,
    suppressWarning: true,
  })
}

const cacheControlOf = (path: string) => (HASHED.test(path) ? FOREVER : SHORT)
