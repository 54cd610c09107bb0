import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { forwardedAddress, UNKNOWN_ADDRESS } from '../../platform/addresses/client-network.ts'

/**
 * Behind trusted proxies, removes ports from `X-Forwarded-For`, so that each client has one key in limits
 * and bans. Warns once if clients seem to share the limits of one address.
 */
export function readClientAddresses(app: FastifyInstance) {
  const trusts = app.gateway.config.TRUST_PROXY !== false
  if (trusts)
    app.server.prependListener('request', ({ headers }: IncomingMessage) => {
      const given = headers['x-forwarded-for']
      if (given !== undefined) headers['x-forwarded-for'] = String(given).split(',').map(forwardedAddress).join(', ')
    })
  let warned = false
  app.addHook('onRequest', (request, _reply, done) => {
    if (!warned && (trusts ? request.ip === UNKNOWN_ADDRESS : request.headers['x-forwarded-for'] !== undefined)) {
      warned = true
      request.log.warn(
        { correlationId: request.id },
        trusts
          ? 'X-Forwarded-For has no address of the client: all such clients share the limits of one address'
          : 'X-Forwarded-For is ignored: if a proxy is in front, set TRUST_PROXY, or all visitors share one address',
      )
    }
    done()
  })
}
