import { URLPattern } from 'node:url'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.ts'

/**
 * Answers paths and methods that nothing here serves: `NotFound`, or `MethodNotAllowed` with `Allow`.
 *
 * @param before runs first; an answer of its own ends the matter
 */
export function answerUnknownRoutes(
  app: FastifyInstance,
  before: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown> = async () => {},
): void {
  const routes = new Map<string, { pattern: URLPattern; methods: Set<string> }>()

  app.addHook('onRoute', ({ url, method }) => {
    const route = routes.get(url) ?? { pattern: new URLPattern({ pathname: url }), methods: new Set(['OPTIONS']) }
    for (const each of [method].flat()) route.methods.add(each)
    routes.set(url, route)
  })

  // At the first hook and not in the handler: on the way there a body would be read and judged.
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404) return
    await before(request, reply)
    if (reply.sent) return reply
    const pathname = request.url.split('?', 1)[0]!
    const found = [...routes.values()].find(({ pattern }) => pattern.test({ pathname }))
    if (found === undefined) throw new GatewayError('NotFound')
    const allow = [...found.methods].sort()
    if (request.method === 'OPTIONS') return reply.code(204).header('allow', allow.join(', ')).send()
    throw new GatewayError('MethodNotAllowed', { allow })
  })

  app.setNotFoundHandler(async () => {
    throw new GatewayError('NotFound')
  })
}
