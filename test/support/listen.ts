import { once } from 'node:events'
import type { Server as WebServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { atFileEnd } from './clean-up.ts'

/**
 * Lets a server listen at a free port of this machine. `close`, or else the end of the test file, closes the
 * server with its connections.
 */
export async function listen(server: Server | WebServer, host = '127.0.0.1') {
  await once(server.listen(0, host), 'listening')
  const { port } = server.address() as AddressInfo
  const close = () =>
    new Promise<void>((resolve) => {
      if ('closeAllConnections' in server) server.closeAllConnections()
      server.close(() => resolve())
    })
  atFileEnd(() => void close())
  return { port, url: `http://${host}:${port}`, close }
}
