import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import createRouter from 'find-my-way'
import { GatewayError } from '../errors.ts'

/** Longest value of a path's parameter, of every router. */
export const PARAM_MAX_LENGTH = 128
/** The router takes a path for each method; here it only finds the path. */
const ANY_METHOD = 'GET'

/**
 * Answers paths and methods that no route here serves: `NotFound`, or `MethodNotAllowed` with `Allow`.
 *
 * @param before runs first; if it sends an answer, that is the answer
 */
export function answerUnknownRoutes(
  app: FastifyInstance,
  before: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown> = async () => {},
): void {
  // The router of Fastify, so that both read a path in the same way: encoded letters, dots, slashes.
  const router = createRouter({ maxParamLength: PARAM_MAX_LENGTH })
  const methodsOf = new Map<string, Set<string>>()

  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsOf.get(url) ?? new Set(['OPTIONS'])
    for (const each of [method].flat()) methods.add(each)
    if (!methodsOf.has(url)) router.on(ANY_METHOD, url, () => {}, methods)
    methodsOf.set(url, methods)
  })

  // In the first hook and not in the handler: before the handler a body would be read and checked.
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404) return
    await before(request, reply)
    if (reply.sent) return reply
    const found = router.find(ANY_METHOD, request.url)
    if (found === null) throw new GatewayError('NotFound')
    const allow = [...(found.store as Set<string>)].sort()
    if (request.method === 'OPTIONS') return reply.code(204).header('allow', allow.join(', ')).send()
    throw new GatewayError('MethodNotAllowed', { allow })
  })

  app.setNotFoundHandler(async () => {
    throw new GatewayError('NotFound')
  })
}
