import { once } from 'node:events'
import { createServer } from 'node:http'
import { boundServer } from '../platform/http/bounded-server.ts'

/** Serves `/livez` (the process runs) and `/readyz` (the cores answer). Rejects if the port is in use. */
export async function serveHealth(options: { host: string; port: number; isReady: () => boolean }) {
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0]
    const status = path === '/livez' ? 200 : path !== '/readyz' ? 404 : options.isReady() ? 200 : 503
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ status: status === 200 ? 'ok' : status === 503 ? 'unavailable' : 'not found' }))
  })
  boundServer(server)
  server.listen({ host: options.host, port: options.port })
  await once(server, 'listening')
  return server
}
