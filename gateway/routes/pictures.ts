import type { FastifyPluginAsync } from 'fastify'
import { createAnswerCache } from '../core-calls/answer-cache.ts'
import { callOptions, coreOf } from '../core-calls/core-clients.ts'
import { GatewayError } from '../errors.ts'
import { answerUnknownRoutes } from '../http/unknown-routes.ts'
import { checkRate } from '../limits/rate-limits.ts'

/** How long a gateway serves a picture without a core, also if it was removed. */
const FRESH_MS = 600_000
const CACHE_MAX_BYTES = 16 * 1024 * 1024
/** Rough size of a cache entry without its content. */
const ENTRY_BYTES = 1_024
const ID = /^[\w-]{43}$/
const HEADERS = {
  'access-control-allow-origin': '*',
  // The content of an id never changes. A removed picture leaves browsers after this time.
  'cache-control': 'public, max-age=2592000, immutable',
  'content-security-policy': "default-src 'none';frame-ancestors 'none';sandbox",
}

/**
 * GET /pictures/{pictureId}. Image elements send neither headers of the contract nor a grant, so only the
 * rate limit applies, to requests that ask a core.
 */
export const pictureRoutes: FastifyPluginAsync = async (app) => {
  const { sessions } = coreOf(app.gateway)
  const pictures = createAnswerCache<{ contentType: string; content: Uint8Array }>({
    freshMs: FRESH_MS,
    maxSize: CACHE_MAX_BYTES,
    sizeOf: ({ content }) => ENTRY_BYTES + content.length,
    now: app.gateway.clock.now,
  })
  answerUnknownRoutes(app)
  app.get<{ Params: { pictureId: string } }>(
    '/:pictureId',
    { schema: { hide: true }, config: { rate: 'pictures' } },
    async (request, reply) => {
      const { pictureId } = request.params
      if (!ID.test(pictureId)) throw new GatewayError('NotFound')
      let picture = pictures.fresh(pictureId)
      if (picture === undefined) {
        await checkRate(request, reply)
        picture = await pictures.ask(pictureId, () => sessions.getPicture({ pictureId }, callOptions(request)))
      }
      const etag = `"${pictureId}"`
      reply.headers({ ...HEADERS, etag })
      if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send()
      return reply.type(picture.contentType).send(Buffer.from(picture.content))
    },
  )
}

/** Whether `If-None-Match` contains the ETag (weak comparison, RFC 9110, section 13.1.2). */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}
