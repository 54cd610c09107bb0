import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

type Direction = 'calls' | 'answers'

interface ProxiedConnection {
  client: Socket
  upstream: Socket
  /** First line of the latest HTTP request. */
  request: string
  /** Directions in which a chunk is being forwarded. */
  forwarding: Set<Direction>
}

/** A TCP proxy that can cut, slow down, freeze and reset connections. */
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
  /** Keeps all connections open, but forwards nothing in these directions until `mend`. */
  freeze(...directions: Direction[]): void
  /**
   * Keeps all connections open, but forwards no answers on those whose latest HTTP request matches.
   * Lasts until `mend`.
   */
  freezeAnswers(requests: RegExp): void
  /** Returns the number of open connections whose latest HTTP request matches. */
  count(requests: RegExp): number
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
  const connections = new Set<ProxiedConnection>()
  let cursors: bigint[] = []
  let isCut = false
  let slowBy = 0
  let resetShare = 0
  let damagedShare = 0
  let isFrozen = (_: Direction, __: ProxiedConnection) => false

  const server = createServer({ noDelay: true }, (client) => {
    if (isCut) return void client.resetAndDestroy()
    const upstream =
      typeof target === 'number'
        ? createConnection({ port: target, host: '127.0.0.1', noDelay: true })
        : createConnection({ path: target })
    const connection: ProxiedConnection = { client, upstream, request: '', forwarding: new Set() }
    connections.add(connection)
    client.on('close', () => connections.delete(connection))
    forward('calls', connection, (chunk) => {
      cursors = [...cursors, ...followedCursors(chunk)].slice(-20)
      const [line = ''] = chunk.toString('latin1', 0, 200).split('\r\n')
      if (/^[A-Z]+ \//.test(line)) connection.request = line
      pauseOrResume('answers', connection)
      return true
    })
    forward('answers', connection, (chunk) => {
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
  function forward(direction: Direction, connection: ProxiedConnection, passes: (chunk: Buffer) => boolean) {
    const { client, upstream } = connection
    const [from, to] = direction === 'calls' ? [client, upstream] : [upstream, client]
    from.on('data', async (chunk) => {
      connection.forwarding.add(direction)
      from.pause()
      if (slowBy > 0) await delay(slowBy)
      if (to.destroyed || !passes(chunk)) return
      to.write(chunk, () => {
        connection.forwarding.delete(direction)
        pauseOrResume(direction, connection)
      })
    })
    from.on('end', () => to.end())
    from.on('error', () => {})
    // If the server's connection closes, resets the client's connection, as the operating system of
    // a crashed server does.
    from.on('close', () => (to === client ? to.resetAndDestroy() : to.destroy()))
    pauseOrResume(direction, connection)
  }

  function pauseOrResume(direction: Direction, connection: ProxiedConnection) {
    const from = direction === 'calls' ? connection.client : connection.upstream
    if (isFrozen(direction, connection) || connection.forwarding.has(direction)) from.pause()
    else from.resume()
  }

  function freezeWhere(frozen: typeof isFrozen) {
    isFrozen = frozen
    for (const connection of connections) {
      pauseOrResume('calls', connection)
      pauseOrResume('answers', connection)
    }
  }

  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true
      for (const { client } of connections) client.resetAndDestroy()
    },
    slow(ms) {
      slowBy = ms
    },
    resetInAnswers(share) {
      resetShare = share
    },
    freeze(...directions) {
      freezeWhere((direction) => directions.includes(direction))
    },
    freezeAnswers(requests) {
      freezeWhere((direction, { request }) => direction === 'answers' && requests.test(request))
    },
    count: (requests) => [...connections].filter(({ request }) => requests.test(request)).length,
    damageAnswers(share) {
      damagedShare = share
    },
    mend() {
      isCut = false
      slowBy = 0
      resetShare = 0
      damagedShare = 0
      freezeWhere(() => false)
    },
    cursors: () => cursors,
    async close() {
      for (const { client } of connections) client.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Start of a `getMore` command in BSON: the field `getMore` (an int64), followed by `collection`. */
const asksForMore = Buffer.from('\x12getMore\0', 'latin1')
const ofWakeups = Buffer.from('\x02collection\0\x08\0\0\0wakeups\0', 'latin1')

/** Returns the ids of wake-up cursors in the `getMore` commands of a chunk of the MongoDB protocol. */
function followedCursors(chunk: Buffer): bigint[] {
  const at = chunk.indexOf(asksForMore)
  if (at < 0) return []
  const end = at + asksForMore.length + 8
  const isFollowed = chunk.subarray(end, end + ofWakeups.length).equals(ofWakeups)
  return isFollowed ? [chunk.readBigInt64LE(end - 8)] : []
}
