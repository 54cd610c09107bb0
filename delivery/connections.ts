import type { Socket } from 'node:net'
import { Client } from 'undici'
import type { ResolvedAddress } from '../platform/addresses/name-service.ts'

/** An HTTP connection to one address. It sends one request at a time. */
export interface Connection {
  origin: string
  client: Client
  socket: Socket
}

export interface Connections {
  /**
   * Removes and returns an idle connection to the origin that is connected to one of the addresses.
   */
  take(origin: string, addresses: ResolvedAddress[]): Connection | undefined
  /** Creates an HTTP connection over a connected socket. */
  adopt(origin: string, socket: Socket): Connection
  /** Puts a connection back into the pool. Its last response must be complete. */
  give(connection: Connection): void
  drop(connection: Connection): void
  /** Number of idle connections. */
  idle(): number
  close(): Promise<void>
}

/** Maximum idle time of a connection in milliseconds, even if the server allows more. */
const idleMs = 4_000
const headersMaxBytes = 16 * 1024

/**
 * Pools up to `maxIdle` idle connections for later requests to the same origin. Evicts the least
 * recently used.
 */
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
        // The undici client must not open connections itself. So the first `connect` gets this
        // socket, and every later one fails. `connect` must return before the callback runs.
        connect: (_options, callback) => {
          const usable = !handedOver && !socket.destroyed
          handedOver = true
          queueMicrotask(() => (usable ? callback(null, socket) : callback(connectionLost(), null)))
        },
        allowH2: false,
        // Disables undici's own timeouts. Only the deadline of the attempt limits a request.
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
  return Object.assign(new Error('connection lost'), { code: 'ECONNRESET' })
}
