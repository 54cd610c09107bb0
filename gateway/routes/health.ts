import type { FastifyPluginAsync } from 'fastify'
import type { CoreClients } from '../core-calls/core-clients.ts'
import { unavailable } from '../errors.ts'

/** GET /livez answers 200 if the process runs. GET /readyz answers 200 if a core also answers. */
export const healthRoutes: FastifyPluginAsync<{ core: CoreClients }> = async (app, { core }) => {
  app.get('/livez', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
    return { status: 'ok' }
  })

  app.get('/readyz', async (_request, reply) => {
    if (!(await core.isReady())) throw unavailable()
    reply.header('cache-control', 'no-store')
    return { status: 'ok' }
  })
}
