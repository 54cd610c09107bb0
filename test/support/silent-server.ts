import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * Starts a server that accepts connections and never answers, until the test ends. Returns its port and
 * the number of its connections.
 */
export async function startSilentServer(host = '127.0.0.1') {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    socket.on('error', () => {}).resume()
  })
  server.listen(0, host)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, connections: () => connections }
}
