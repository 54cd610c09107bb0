import { createServer } from 'node:net'
import { onTestFinished } from 'vitest'
import { listen } from './listen.ts'

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
  const { port, close } = await listen(server, host)
  onTestFinished(() => void close())
  return { port, connections: () => connections }
}
