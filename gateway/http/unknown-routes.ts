import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import createRouter from 'find-my-way'
import { GatewayError } from '../errors.ts'

export const PARAM_MAX_LENGTH = 128
/** The method of all paths in this router, which matches paths only. */
const ANY_METHOD = 'GET'

/**
 * Answers unknown paths with `NotFound` and unknown methods with `MethodNotAllowed`. `before` runs first
 * and may send the answer itself.
 */
export function answerUnknownRoutes(
  app: FastifyInstance,
  before: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown> = async () => {},
) {
  // The router of Fastify, so that both parse encoded letters, dots and slashes alike.
  const router = createRouter({ maxParamLength: PARAM_MAX_LENGTH })
  const methodsOf = new Map<string, Set<string>>()

  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsOf.get(url) ?? new Set(['OPTIONS'])
    for (const each of [method].flat()) methods.add(each)
    if (!methodsOf.has(url)) router.on(ANY_METHOD, url, () => {}, methods)
    methodsOf.set(url, methods)
  })

  // A handler would run only after the body is read and validated.
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done()
    answer(request, reply).catch(done)
  })

  async function answer(request: FastifyRequest, reply: FastifyReply) {
    await before(request, reply)
    if (reply.sent) return
    const found = router.find(ANY_METHOD, request.url)
    if (found === null) throw new GatewayError('NotFound')
    const allow = [...(found.store as Set<string>)].sort()
    if (request.method !== 'OPTIONS') throw new GatewayError('MethodNotAllowed', { allow })
    reply.code(204).header('allow', allow.join(', ')).send()
  }

  app.setNotFoundHandler(async () => {
    throw new GatewayError('NotFound')
  })
}
