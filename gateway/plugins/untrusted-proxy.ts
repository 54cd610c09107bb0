import type { FastifyInstance } from 'fastify'

/** Warns once when a proxy seems to be in front that is not trusted. All visitors then share one address, and its limits. */
export function warnOfProxy(app: FastifyInstance): void {
  let warned = false
  app.addHook('onRequest', (request, _reply, done) => {
    if (!warned && request.headers['x-forwarded-for'] !== undefined) {
      warned = true
      request.log.warn(
        'X-Forwarded-For is ignored: if a proxy is in front, set TRUST_PROXY, or all visitors share one address',
      )
    }
    done()
  })
}
