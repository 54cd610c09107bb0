import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { forwardedAddress, UNKNOWN_ADDRESS } from '../../platform/addresses/forwarded-address.ts'

/**
 * Makes the entries of `X-Forwarded-For` addresses without a port, so that each client has one key
 * in limits and bans. Warns once of a client without an address. Call it behind trusted proxies.
 */
export function readForwardedAddresses(app: FastifyInstance): void {
  app.server.prependListener('request', ({ headers }: IncomingMessage) => {
    const given = headers['x-forwarded-for']
    if (given !== undefined) headers['x-forwarded-for'] = String(given).split(',').map(forwardedAddress).join(', ')
  })
  let warned = false
  app.addHook('onRequest', (request, _reply, done) => {
    if (!warned && request.ip === UNKNOWN_ADDRESS) {
      warned = true
      request.log.warn('X-Forwarded-For has no address of the client: all such clients share the limits of one address')
    }
    done()
  })
}
