import type { FastifyInstance } from 'fastify'

/**
 * Warns once if requests seem to come through an untrusted proxy. All visitors then share the rate
 * limits of one address.
 */
export function warnOfUntrustedProxy(app: FastifyInstance): void {
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
