import type { Socket } from 'node:net'
import { Client } from 'undici'
import type { ResolvedAddress } from '../platform/addresses/resolve.ts'

/** One connection to one address, for one request at a time. */
export interface Connection {
  origin: string
  client: Client
  socket: Socket
}

export interface Connections {
  /** A connection to the origin that waits for work, if it ends at one of these addresses. */
  take(origin: string, addresses: ResolvedAddress[]): Connection | undefined
  /** HTTP over a fresh socket. */
  adopt(origin: string, socket: Socket): Connection
  /** Back after a request that was answered whole. */
  give(connection: Connection): void
  drop(connection: Connection): void
  /** How many wait for work. */
  idle(): number
  close(): Promise<void>
}

/** Longest time that a connection waits for work, also where its server promises more, in milliseconds. */
const idleMs = 4_000
const headersMaxBytes = 16 * 1024

/** Keeps connections for the next request to the same origin: `maxIdle` of them, the longest unused one goes first. */
export function createConnections({ maxIdle }: { maxIdle: number }): Connections {
  const idle = new Set<Connection>()
  const byOrigin = new Map<string, Set<Connection>>()

  function remove(connection: Connection): void {
    if (!idle.delete(connection)) return
    const siblings = byOrigin.get(connection.origin)
    siblings?.delete(connection)
    if (siblings?.size === 0) byOrigin.delete(connection.origin)
  }

  function drop(connection: Connection): void {
    remove(connection)
    void connection.client.destroy().catch(() => {})
    connection.socket.destroy()
  }

  return {
    drop,
    take(origin, addresses) {
      const allowed = new Set(addresses.map(({ address }) => address))
      const found = [...(byOrigin.get(origin) ?? [])].findLast(
        ({ socket }) => !socket.destroyed && allowed.has(socket.remoteAddress ?? ''),
      )
      if (found) remove(found)
      return found
    },
    adopt(origin, socket) {
      let handedOver = false
      const client = new Client(origin, {
        // The client never opens a connection itself: it gets this one, once. It does not expect an answer within the call.
        connect: (_options, callback) => {
          const usable = !handedOver && !socket.destroyed
          handedOver = true
          queueMicrotask(() => (usable ? callback(null, socket) : callback(connectionLost(), null)))
        },
        allowH2: false,
        // The deadline of the attempt is the only clock.
        headersTimeout: 0,
        bodyTimeout: 0,
        keepAliveTimeout: idleMs,
        keepAliveMaxTimeout: idleMs,
        maxHeaderSize: headersMaxBytes,
      })
      const connection: Connection = { origin, client, socket }
      socket.once('close', () => drop(connection))
      return connection
    },
    give(connection) {
      if (connection.socket.destroyed || connection.client.destroyed) return drop(connection)
      idle.add(connection)
      const siblings = byOrigin.get(connection.origin) ?? new Set()
      byOrigin.set(connection.origin, siblings.add(connection))
      const [oldest] = idle
      if (idle.size > maxIdle && oldest) drop(oldest)
    },
    idle: () => idle.size,
    async close() {
      for (const connection of idle) drop(connection)
    },
  }
}

function connectionLost(): Error {
  return Object.assign(new Error('the connection was lost'), { code: 'ECONNRESET' })
}
