import { once } from 'node:events'
import type { Server, Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { isLong, itLong, someOf } from '../../test/support/is-long.ts'
import { message, startTestGateway, type TestGateway } from '../test/test-gateway.ts'
import { answersIn, openSocket, requestBytes, type TestSocket } from '../test/test-socket.ts'

/** Collects the server sockets of connections made from now on. */
function watchSockets({ gateway }: TestGateway): Socket[] {
  const sockets: Socket[] = []
  const server: Server = gateway.server
  server.on('connection', (socket: Socket) => void sockets.push(socket))
  return sockets
}

const openConnections = ({ gateway }: TestGateway) =>
  new Promise<number>((resolve) => gateway.server.getConnections((_error, count) => resolve(count)))

async function openStream(gateway: TestGateway): Promise<TestSocket> {
  const client = openSocket(gateway.port, requestBytes('GET', '/events'))
  await expect.poll(() => client.text()).toContain(': open')
  return client
}

const tick = ({ clock }: TestGateway, seconds: number) => {
  for (let second = 0; second < seconds; second++) clock.advance(1_000)
}

const SHORT = { REQUEST_TIMEOUT_MS: '1000' }

/** If no core is connected any more, all streams of the gateway end, not only one. */
const LOST_CORE = 'a stream that has lost every core'

/** Every way in which the gateway ends a connection. */
const WAYS: [string, Record<string, string>, (gateway: TestGateway) => Promise<TestSocket>][] = [
  [
    'a stream of a revoked session',
    {},
    async (gateway) => {
      const client = await openStream(gateway)
      const [link] = gateway.core.links
      const [subscriptionId] = link!.open.keys()
      gateway.core.publish('session.revoked')
      link!.push({ case: 'closed', value: { subscriptionId: subscriptionId! } })
      return client
    },
  ],
  [
    'a stream that a newer stream of its session replaces',
    { STREAMS_PER_SESSION: '1' },
    async (gateway) => {
      const client = await openStream(gateway)
      await openStream(gateway)
      return client
    },
  ],
  [
    'a stream that has reached its maximum age',
    { STREAM_MAX_AGE_SECONDS: '2', HEARTBEAT_SECONDS: '1' },
    async (gateway) => {
      const client = await openStream(gateway)
      tick(gateway, 2)
      return client
    },
  ],
  [
    LOST_CORE,
    {},
    async (gateway) => {
      const client = await openStream(gateway)
      gateway.core.down = true
      gateway.core.links[0]!.break()
      await expect.poll(() => gateway.lines.join('')).toContain('event link is down')
      tick(gateway, 31)
      return client
    },
  ],
  ['CONNECT', {}, async ({ port }) => openSocket(port, 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n')],
  [
    'an upgrade request',
    {},
    async ({ port }) => openSocket(port, 'GET /livez HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'),
  ],
  ['broken HTTP', {}, async ({ port }) => openSocket(port, 'no HTTP at all\r\n\r\n')],
  [
    'an oversized header',
    {},
    async ({ port }) => openSocket(port, `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`),
  ],
  [
    'headers that do not arrive completely',
    SHORT,
    async ({ port }) => openSocket(port, 'GET / HTTP/1.1\r\nHost: x\r\n'),
  ],
  ['a client that sends nothing', SHORT, async ({ port }) => openSocket(port)],
  [
    'a body that does not arrive completely',
    SHORT,
    async ({ port }) =>
      openSocket(
        port,
        `${requestBytes('POST', '/messages', { more: 'Content-Length: 9\r\nContent-Type: application/json\r\n' })}{`,
      ),
  ],
  [
    'a body of more than four times the size limit',
    { BODY_LIMIT_BYTES: '40000' },
    async ({ port }) =>
      openSocket(
        port,
        requestBytes('POST', '/messages', { more: 'Content-Length: 9999999\r\nContent-Type: application/json\r\n' }) +
          'x'.repeat(160_001),
      ),
  ],
  [
    'a request with Connection: close',
    {},
    async ({ port }) => openSocket(port, requestBytes('GET', '/messages', { more: 'Connection: close\r\n' })),
  ],
  [
    'a stream that is rejected because of a pipelined request',
    {},
    async ({ port }) => openSocket(port, requestBytes('GET', '/events') + requestBytes('GET', '/messages')),
  ],
  [
    'a connection above the limit per address',
    { CONNECTIONS_PER_ADDRESS: '1' },
    async (gateway) => {
      await openStream(gateway)
      return openSocket(gateway.port, requestBytes('POST', '/messages', { body: message() }))
    },
  ],
]

describe('ended connection', () => {
  test.each(someOf(WAYS, 5))(
    'is destroyed within 5 s if the client keeps its side open: %s',
    async (_name, env, open) => {
      const gateway = await startTestGateway({ env })
      const sockets = watchSockets(gateway)
      const client = await open(gateway)
      await expect.poll(client.isEnded, { timeout: 10_000 }).toBe(true)
      const ended = sockets.find(({ remotePort }) => remotePort === client.socket.localPort)
      tick(gateway, 5)
      await expect.poll(() => ended?.destroyed ?? true).toBe(true)
      expect(sockets.filter(({ destroyed, writableEnded }) => writableEnded && !destroyed)).toEqual([])
    },
  )

  itLong('is destroyed within 5 s if the client does not read', async () => {
    const gateway = await startTestGateway()
    const [sockets, client] = [watchSockets(gateway), await openStream(gateway)]
    client.socket.pause()
    const [link] = gateway.core.links
    await expect
      .poll(
        () => {
          gateway.core.publish('message.received', { x: 'x'.repeat(50_000) })
          return sockets[0]!.writableLength
        },
        { interval: 5, timeout: 20_000 },
      )
      .toBeGreaterThan(100_000)
    link!.push({ case: 'closed', value: { subscriptionId: [...link!.open.keys()][0]! } })
    await expect.poll(() => sockets[0]!.writableEnded).toBe(true)
    expect(sockets[0]!.writableFinished).toBe(false)
    tick(gateway, 5)
    await expect.poll(() => sockets[0]!.destroyed).toBe(true)
  })

  test('can be read to its end by a slow client', async () => {
    const gateway = await startTestGateway()
    const [sockets, client] = [watchSockets(gateway), await openStream(gateway)]
    const [link] = gateway.core.links
    link!.push({ case: 'closed', value: { subscriptionId: [...link!.open.keys()][0]! } })
    await expect.poll(client.isEnded).toBe(true)
    tick(gateway, 3)
    expect(sockets[0]!.destroyed).toBe(false)
  })
})

describe('connection of an address that has too many connections', () => {
  const POST = requestBytes('POST', '/messages', { body: message() })

  test('gets 429, and the gateway neither parses nor executes its request', async () => {
    const gateway = await startTestGateway({ env: { CONNECTIONS_PER_ADDRESS: '1' } })
    let parsed = 0
    gateway.gateway.server.on('request', () => parsed++)
    await openStream(gateway)
    const refused = Array.from({ length: 5 }, () => openSocket(gateway.port, POST))
    for (const client of refused) {
      await expect.poll(client.isEnded).toBe(true)
      expect(answersIn(client.text()).map(({ status }) => status)).toEqual([429])
    }
    expect(parsed).toBe(1)
    expect(gateway.core.log).toEqual([])
  })

  test('is destroyed, so the number of open sockets per address stays limited', async () => {
    const gateway = await startTestGateway({ env: { CONNECTIONS_PER_ADDRESS: '5' } })
    const clients = Array.from({ length: isLong ? 100 : 40 }, () =>
      openSocket(gateway.port, 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'),
    )
    const isSettled = (client: TestSocket) => client.isEnded() || client.text() !== ''
    await expect.poll(() => clients.every(isSettled)).toBe(true)
    expect(await openConnections(gateway)).toBeLessThanOrEqual(15)
    tick(gateway, 5)
    await expect.poll(() => openConnections(gateway)).toBe(5)
  })

  test('is refused while an ended connection of the address is half open', async () => {
    const gateway = await startTestGateway({ env: { CONNECTIONS_PER_ADDRESS: '1' } })
    const client = openSocket(gateway.port, 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n')
    await expect.poll(client.isEnded).toBe(true)
    const status = async () => {
      const next = openSocket(gateway.port, 'GET /livez HTTP/1.0\r\n\r\n')
      await expect.poll(next.isEnded).toBe(true)
      next.socket.destroy()
      return answersIn(next.text())[0]?.status
    }
    expect(await status()).toBe(429)
    tick(gateway, 5)
    await expect.poll(status).toBe(200)
  })
})

describe('stopping gateway', () => {
  const HANGING: [string, (gateway: TestGateway) => Promise<TestSocket>][] = [
    ...WAYS.filter(([name, env]) => Object.keys(env).length === 0 && name !== LOST_CORE).map(
      ([name, , open]): [string, (gateway: TestGateway) => Promise<TestSocket>] => [name, open],
    ),
    ['a stream', openStream],
    ['half a request', async ({ port }) => openSocket(port, 'GET /livez HT')],
    ['a new connection', async ({ port }) => openSocket(port)],
    ['an idle connection', async ({ port }) => openSocket(port, 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')],
    [
      'half a body',
      async ({ port }) =>
        openSocket(
          port,
          `${requestBytes('POST', '/messages', { more: 'Content-Length: 9\r\nContent-Type: application/json\r\n' })}{`,
        ),
    ],
    [
      'a body that is dropped',
      async ({ port }) =>
        openSocket(
          port,
          requestBytes('POST', '/nowhere', { more: 'Content-Length: 9\r\nContent-Type: application/json\r\n' }),
        ),
    ],
  ]

  test.each(
    someOf(
      [
        ['open client connections', HANGING],
        [
          LOST_CORE,
          WAYS.filter(([name]) => name === LOST_CORE).map(([name, , open]): (typeof HANGING)[0] => [name, open]),
        ],
      ],
      1,
    ),
  )('stops within seconds despite %s', async (_name, hanging) => {
    const gateway = await startTestGateway()
    const [sockets, clients] = [watchSockets(gateway), await Promise.all(hanging.map(([, open]) => open(gateway)))]
    await expect.poll(() => sockets.length).toBe(clients.length)
    const started = performance.now()
    await gateway.gateway.close()
    expect(performance.now() - started).toBeLessThan(4_000)
    expect(sockets.filter(({ destroyed }) => !destroyed)).toEqual([])
  })

  itLong('stops within its time limit although a core never answers and requests are queued', async () => {
    const gateway = await startTestGateway()
    gateway.core.onList = () => new Promise(() => {})
    const client = openSocket(gateway.port, requestBytes('GET', '/messages') + requestBytes('GET', '/events'))
    await expect.poll(() => gateway.core.count('listVisitorMessages')).toBe(1)
    const started = performance.now()
    await gateway.gateway.close()
    expect(performance.now() - started).toBeLessThan(10_000)
    await expect.poll(client.isEnded).toBe(true)
  })

  test('sends the pending answer and starts no queued request', async () => {
    const gateway = await startTestGateway()
    const { promise: gate, resolve: release } = Promise.withResolvers<void>()
    gateway.core.onList = () => gate
    const behind = requestBytes('POST', '/messages', { body: message() })
    const client = openSocket(gateway.port, requestBytes('GET', '/messages') + behind)
    await expect.poll(() => gateway.core.count('listVisitorMessages')).toBe(1)
    const closed = gateway.gateway.close()
    await expect.poll(() => gateway.gateway.server.listening).toBe(false)
    release()
    await closed
    if (!client.socket.destroyed) await Promise.race([once(client.socket, 'end'), once(client.socket, 'close')])
    expect(answersIn(client.text()).map(({ status }) => status)).toEqual([200])
    expect(gateway.core.count('sendVisitorMessages')).toBe(0)
  })
})
