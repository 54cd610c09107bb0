import type { Server, Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { clientNetwork } from '../client-network.ts'
import type { Clock } from '../clock.ts'
import { GatewayError } from '../errors.ts'
import { rawAnswer } from './raw-answer.ts'
import { isAnswering } from './request-queue.ts'

const CHECK_MS = 1_000
/** Checks that a connection survives after the gateway has ended it: time to read the last bytes. */
const CHECKS_AFTER_END = 3
/** Refused connections of one address that may read their answer. Those beyond are destroyed at once. */
const REFUSED_MAX = 10
/** How long a stopping gateway waits for clients: for the rest of a request, or for the end of their side. */
const STOP_CLIENTS_MS = 2_000
/** How long it waits for answers that are being made. Less than the grace of the process. */
const STOP_ANSWERS_MS = 8_000

interface AddressCount {
  address: string
  accepted: number
  refused: number
}

/** An open connection. There are thousands, so each has no function of its own. */
interface Connection {
  /** Checks since its end. */
  checks: number
  kind: 'accepted' | 'refused'
  count: AddressCount | undefined
}

/**
 * Bounds how many connections there are and how long they last.
 *
 * - One more than `perAddress` of an address is answered `RateLimited`, before anything of it is read.
 * - A connection that the gateway has ended is destroyed within 5 s, even if the client keeps its side open.
 * - A stopping gateway ends within 10 s, whatever its clients do.
 *
 * @param options.perAddress undefined where a trusted proxy holds the connections
 */
export function boundConnections(
  app: FastifyInstance,
  options: { perAddress: number | undefined; clock: Clock },
): void {
  const { perAddress, clock } = options
  const server: Server = app.server
  const open = new Map<Socket, Connection>()
  const byAddress = new Map<string, AddressCount>()
  let cancelTimers = () => {}

  // In place of the HTTP server's own listener, which begins to read.
  const accept = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const count = perAddress === undefined ? undefined : countOf(socket)
    const kind = count === undefined || count.accepted < perAddress! ? 'accepted' : 'refused'
    if (count !== undefined) count[kind]++
    open.set(socket, { checks: 0, kind, count })
    socket.on('close', forget)
    if (kind === 'accepted') for (const each of accept) each.call(server, socket)
    else refuse(socket, count!)
  })

  function countOf(socket: Socket): AddressCount {
    const address = clientNetwork(socket.remoteAddress ?? '')
    const count = byAddress.get(address) ?? { address, accepted: 0, refused: 0 }
    byAddress.set(address, count)
    return count
  }

  function forget(this: Socket): void {
    const { kind, count } = open.get(this)!
    open.delete(this)
    if (count === undefined) return
    count[kind]--
    if (count.accepted + count.refused === 0) byAddress.delete(count.address)
  }

  function refuse(socket: Socket, { refused }: AddressCount): void {
    socket.on('error', () => socket.destroy())
    if (refused > REFUSED_MAX) socket.destroy()
    // Unread bytes would make the end a reset, which takes the answer from the client.
    else socket.resume().end(rawAnswer(new GatewayError('RateLimited', { retryAfter: 1 })))
  }

  function destroyEnded(): void {
    for (const [socket, connection] of open) {
      if (!socket.writableEnded) continue
      if (connection.checks >= CHECKS_AFTER_END) socket.destroy()
      else connection.checks++
    }
  }

  function destroyOpen(except: (socket: Socket) => boolean = () => false): void {
    for (const socket of open.keys()) if (!except(socket)) socket.destroy()
  }

  app.addHook('onReady', async () => {
    cancelTimers = clock.every(CHECK_MS, destroyEnded)
  })
  app.addHook('preClose', async () => {
    cancelTimers()
    const cancelFirst = clock.after(STOP_CLIENTS_MS, () => destroyOpen(isAnswering))
    const cancelLast = clock.after(STOP_ANSWERS_MS, destroyOpen)
    cancelTimers = () => {
      cancelFirst()
      cancelLast()
    }
  })
  app.addHook('onClose', async () => cancelTimers())
}
