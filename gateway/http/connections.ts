import type { Server, Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { clientNetwork } from '../../platform/addresses/client-network.ts'
import { isAnswering } from '../../platform/http/request-queue.ts'
import { createUnreadAnswers } from '../../platform/http/unread-answers.ts'
import { GatewayError } from '../errors.ts'
import { rawAnswer } from './raw-answers.ts'

const CHECK_MS = 1_000
/** An ended connection is destroyed after so many checks. Until then the client can read the last bytes. */
const CHECKS_AFTER_END = 3
/** Refused connections per address that get an answer. Further ones get none. */
const REFUSED_MAX = 10
/** How long a stopping gateway waits for clients to finish or close. */
const STOP_CLIENTS_MS = 2_000
/** How long a stopping gateway waits for its own answers: less than the grace time of the process. */
const STOP_ANSWERS_MS = 8_000

interface AddressCount {
  address: string
  accepted: number
  refused: number
}

/** An open connection. There are thousands, so it holds no closures. */
interface Connection {
  checks: number
  kind: 'accepted' | 'refused'
  count: AddressCount | undefined
}

/**
 * Limits the number and lifetime of connections.
 *
 * - If an address has `CONNECTIONS_PER_ADDRESS` connections, its next one gets `RateLimited` before it is read.
 * - An ended connection is destroyed within 5 s, even if the client keeps its side open.
 * - Unread answers are bounded: see `publicLimits`.
 * - A stopping gateway ends within 10 s, even if clients keep their connections open.
 */
export function boundConnections(app: FastifyInstance) {
  const { config, clock } = app.gateway
  // Behind a trusted proxy, all visitors share the addresses of the proxy.
  const perAddress =
    config.TRUST_PROXY === false ? Math.ceil(config.CONNECTIONS_PER_ADDRESS * config.RATE_LIMIT_FACTOR) : undefined
  const server: Server = app.server
  const open = new Map<Socket, Connection>()
  const byAddress = new Map<string, AddressCount>()
  const unread = createUnreadAnswers()
  let cancelTimers = () => {}

  // The HTTP server's own listener starts reading at once.
  const accept = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const count = perAddress === undefined ? undefined : countOf(socket)
    const kind = count === undefined || count.accepted < perAddress! ? 'accepted' : 'refused'
    if (count !== undefined) count[kind]++
    open.set(socket, { checks: 0, kind, count })
    socket.on('close', forget)
    unread.add(socket)
    if (kind === 'accepted') for (const each of accept) each.call(server, socket)
    else refuse(socket, count!)
  })

  function countOf(socket: Socket) {
    const address = clientNetwork(socket.remoteAddress ?? '')
    const count = byAddress.get(address) ?? { address, accepted: 0, refused: 0 }
    byAddress.set(address, count)
    return count
  }

  function forget(this: Socket) {
    const { kind, count } = open.get(this)!
    open.delete(this)
    if (count === undefined) return
    count[kind]--
    if (count.accepted + count.refused === 0) byAddress.delete(count.address)
  }

  function refuse(socket: Socket, { refused }: AddressCount) {
    socket.on('error', () => socket.destroy())
    if (refused > REFUSED_MAX) socket.destroy()
    // Unread bytes would turn the close into a reset, and the client would lose the answer.
    else socket.resume().end(rawAnswer(new GatewayError('RateLimited', { retryAfter: 1 })))
  }

  function destroyEnded() {
    for (const [socket, connection] of open) {
      if (!socket.writableEnded) continue
      if (connection.checks >= CHECKS_AFTER_END) socket.destroy()
      else connection.checks++
    }
  }

  function destroyConnections(except: (socket: Socket) => boolean = () => false) {
    for (const socket of open.keys()) if (!except(socket)) socket.destroy()
  }

  app.addHook('onReady', async () => {
    cancelTimers = clock.every(CHECK_MS, () => {
      destroyEnded()
      unread.check()
    })
  })
  app.addHook('preClose', async () => {
    cancelTimers()
    const cancelFirst = clock.after(STOP_CLIENTS_MS, () => destroyConnections(isAnswering))
    const cancelLast = clock.after(STOP_ANSWERS_MS, destroyConnections)
    cancelTimers = () => {
      cancelFirst()
      cancelLast()
    }
  })
  app.addHook('onClose', async () => cancelTimers())
}
