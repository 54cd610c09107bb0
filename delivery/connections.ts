import type { Socket } from 'node:net'
import type { ResolvedAddress } from '../platform/addresses/name-service.ts'

const idleMs = 4_000
/** Each closes an idle connection. Bytes that nobody asked for are no response. */
const endings = ['data', 'timeout', 'close']

/**
 * Keeps up to `maxIdle` connections for later requests to the same origin. Evicts the least recently used.
 */
export function createConnections({ maxIdle }: { maxIdle: number }) {
  const idle = new Map<Socket, string>()

  function remove(socket: Socket) {
    idle.delete(socket)
    for (const event of endings) socket.off(event, drop)
    socket.setTimeout(0)
  }

  function drop(this: Socket) {
    remove(this)
    this.destroy()
  }

  return {
    /** Removes and returns a connection to the origin and one of the addresses. */
    take(origin: string, addresses: ResolvedAddress[]) {
      const allowed = new Set(addresses.map(({ address }) => address))
      const found = [...idle].findLast(
        ([{ writable, remoteAddress = '' }, its]) => its === origin && writable && allowed.has(remoteAddress),
      )
      if (found) remove(found[0])
      return found?.[0]
    },
    /** Its last response must be complete. */
    give(origin: string, socket: Socket) {
      idle.set(socket, origin)
      for (const event of endings) socket.on(event, drop)
      socket.setTimeout(idleMs)
      const [oldest] = idle.keys()
      if (idle.size > maxIdle && oldest) drop.call(oldest)
    },
    idle: () => idle.size,
    async close() {
      for (const socket of idle.keys()) drop.call(socket)
    },
  }
}
