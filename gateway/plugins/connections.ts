import type { Server, Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { clientNetwork } from '../client-network.ts'
import { GatewayError } from '../errors.ts'
import { rawAnswer } from './raw-answer.ts'

/**
 * Bounds the open connections of one client address: one more is answered `RateLimited`, before anything of it is read,
 * and closed.
 */
export function boundConnections(app: FastifyInstance, perAddress: number): void {
  const open = new Map<string, number>()
  const server: Server = app.server

  // Before the HTTP server's own listener, which would begin to read.
  server.prependListener('connection', (socket: Socket) => {
    const address = clientNetwork(socket.remoteAddress ?? '')
    const count = (open.get(address) ?? 0) + 1
    open.set(address, count)
    socket.once('close', () => {
      const left = open.get(address)! - 1
      if (left === 0) open.delete(address)
      else open.set(address, left)
    })
    if (count <= perAddress) return
    socket.on('error', () => socket.destroy())
    socket.end(rawAnswer(new GatewayError('RateLimited', { retryAfter: 1 })))
  })
}
