import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

type Direction = 'calls' | 'answers'

/** A TCP proxy that can cut, slow down and reset connections. */
export interface FaultyProxy {
  port: number
  /** Resets all connections, including new ones. */
  cut(): void
  /** Delays each chunk by `ms` milliseconds in both directions. */
  slow(ms: number): void
  /**
   * Damages answers of the server: a chunk is cut in half and its connection is reset. `share` is
   * the probability for each chunk, from 0 to 1.
   */
  resetInAnswers(share: number): void
  /** Keeps all connections open, but forwards nothing in these directions. */
  freeze(...directions: Direction[]): void
  /**
   * Replaces a chunk of the server's answers by other bytes, and then resets its connection.
   * `share` is the probability for each chunk, from 0 to 1.
   */
  damageAnswers(share: number): void
  mend(): void
  /**
   * Returns the ids of the MongoDB cursors with which a core reads wake-ups. The most recent cursor
   * comes last. The proxy finds the ids in the `getMore` commands that it forwards.
   */
  cursors(): bigint[]
  close(): Promise<void>
}

/**
 * Starts a TCP proxy to `target`, which is a local port or the path of a Unix socket. `chance`
 * returns a random number from 0 (included) to 1 (excluded).
 */
export async function startFaultyProxy(
  target: number | string,
  chance: () => number = Math.random,
): Promise<FaultyProxy> {
  const clients = new Set<Socket>()
  let cursors: bigint[] = []
  let isCut = false
  let slowBy = 0
  let resetShare = 0
  let damagedShare = 0
  /** Settled for each direction that is not frozen. */
  const thawed = { calls: Promise.withResolvers<void>(), answers: Promise.withResolvers<void>() }
  const thaw = () => Object.values(thawed).forEach(({ resolve }) => void resolve())
  thaw()

  const server = createServer({ noDelay: true }, (client) => {
    if (isCut) return void client.resetAndDestroy()
    clients.add(client)
    client.on('close', () => clients.delete(client))
    const upstream =
      typeof target === 'number'
        ? createConnection({ port: target, host: '127.0.0.1', noDelay: true })
        : createConnection({ path: target })
    forward('calls', client, upstream, (chunk) => {
      cursors = [...cursors, ...followedCursors(chunk)].slice(-20)
      return true
    })
    forward('answers', upstream, client, (chunk) => {
      if (damagedShare > 0 && chance() < damagedShare) {
        client.write(Buffer.alloc(chunk.length, 0xa5), () => client.resetAndDestroy())
        return false
      }
      if (resetShare === 0 || chance() >= resetShare) return true
      client.write(chunk.subarray(0, Math.floor(chunk.length / 2)), () => client.resetAndDestroy())
      return false
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  /** Forwards one chunk at a time, so that the order is kept and backpressure works. */
  function forward(direction: Direction, from: Socket, to: Socket, passes: (chunk: Buffer) => boolean) {
    from.on('data', async (chunk) => {
      from.pause()
      await thawed[direction].promise
      if (slowBy > 0) await delay(slowBy)
      if (to.destroyed || !passes(chunk)) return
      to.write(chunk, () => from.resume())
    })
    from.on('end', () => to.end())
    from.on('error', () => {})
    // If the server's connection closes, resets the client's connection, as the operating system of
    // a crashed server does.
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
    freeze(...directions) {
      for (const direction of directions) {
        thawed[direction].resolve()
        thawed[direction] = Promise.withResolvers()
      }
    },
    damageAnswers(share) {
      damagedShare = share
    },
    mend() {
      isCut = false
      slowBy = 0
      resetShare = 0
      damagedShare = 0
      thaw()
    },
    cursors: () => cursors,
    async close() {
      thaw()
      for (const socket of clients) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/**
 * Start of a `getMore` command in BSON: the field `getMore` (an int64), followed by `collection`.
 */
const asksForMore = Buffer.from('\x12getMore\0', 'latin1')
const ofWakeups = Buffer.from('\x02collection\0\x08\0\0\0wakeups\0', 'latin1')

/**
 * Returns the ids of wake-up cursors in the `getMore` commands of a chunk of the MongoDB protocol.
 */
function followedCursors(chunk: Buffer): bigint[] {
  const at = chunk.indexOf(asksForMore)
  if (at < 0) return []
  const end = at + asksForMore.length + 8
  const isFollowed = chunk.subarray(end, end + ofWakeups.length).equals(ofWakeups)
  return isFollowed ? [chunk.readBigInt64LE(end - 8)] : []
}
