import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** A way to a server that can be cut, slowed, and broken off in the middle of an answer. */
export interface Link {
  port: number
  /** Every connection ends with a reset, and each new one does. */
  cut(): void
  /** Each piece, in both directions, comes so many milliseconds later. */
  slow(ms: number): void
  /** In so many of the server's pieces (0 to 1) only the first half arrives, and a reset after it. */
  resetInAnswers(share: number): void
  mend(): void
  /** Ids of the tailable cursors that clients have asked for more on this way, the latest last. */
  cursors(): bigint[]
  close(): Promise<void>
}

/** `target`: a port of this machine or a unix socket's path. `chance`: 0 to less than 1. */
export async function startLink(target: number | string, chance: () => number = Math.random): Promise<Link> {
  const clients = new Set<Socket>()
  let cursors: bigint[] = []
  let isCut = false
  let slowBy = 0
  let resetShare = 0

  const server = createServer({ noDelay: true }, (client) => {
    if (isCut) return void client.resetAndDestroy()
    clients.add(client)
    client.on('close', () => clients.delete(client))
    const upstream =
      typeof target === 'number'
        ? createConnection({ port: target, host: '127.0.0.1', noDelay: true })
        : createConnection({ path: target })
    forward(client, upstream, (chunk) => {
      cursors = [...cursors, ...followedCursors(chunk)].slice(-20)
      return true
    })
    forward(upstream, client, (chunk) => {
      if (resetShare === 0 || chance() >= resetShare) return true
      client.write(chunk.subarray(0, Math.floor(chunk.length / 2)), () => client.resetAndDestroy())
      return false
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  /** One piece at a time, so that what is slow stays in order and nothing piles up here. */
  function forward(from: Socket, to: Socket, passes: (chunk: Buffer) => boolean) {
    from.on('data', async (chunk) => {
      from.pause()
      if (slowBy > 0) await delay(slowBy)
      if (to.destroyed || !passes(chunk)) return
      to.write(chunk, () => from.resume())
    })
    from.on('end', () => to.end())
    from.on('error', () => {})
    // As a server's machine does whose process is gone, or never was there.
    from.on('close', () => (clients.has(to) ? to.resetAndDestroy() : to.destroy()))
  }

  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true
      for (const socket of clients) socket.resetAndDestroy()
    },
    slow(ms) {
      slowBy = ms
    },
    resetInAnswers(share) {
      resetShare = share
    },
    mend() {
      isCut = false
      slowBy = 0
      resetShare = 0
    },
    cursors: () => cursors,
    async close() {
      for (const socket of clients) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** `getMore` and `collection` as BSON has them: an int64, and a string with its length. */
const asksForMore = Buffer.from('\x12getMore\0', 'latin1')
const ofWakeups = Buffer.from('\x02collection\0\x08\0\0\0wakeups\0', 'latin1')

/** The cursors on the wake-ups that a piece of MongoDB's protocol asks for more. */
function followedCursors(chunk: Buffer): bigint[] {
  const at = chunk.indexOf(asksForMore)
  if (at < 0) return []
  const end = at + asksForMore.length + 8
  const isFollowed = chunk.subarray(end, end + ofWakeups.length).equals(ofWakeups)
  return isFollowed ? [chunk.readBigInt64LE(end - 8)] : []
}
