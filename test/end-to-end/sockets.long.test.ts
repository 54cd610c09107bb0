import { beforeAll, describe, expect, it } from 'vitest'
import { openSocket } from '../../gateway/test/test-socket.ts'
import { openFiles } from '../support/proc.ts'
import { type Part, type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'

const perAddress = 60
/**
 * Maximum number of rejected connections that are still open because their clients are still
 * reading the response.
 */
const refusedMax = 10
const endedWithinMs = 5_000
/** Additional time that is allowed on a busy machine. */
const slackMs = 2_000

const database = testDatabase()
let stack: Stack

beforeAll(async () => {
  stack = await startStack({ database, env: { CONNECTIONS_PER_ADDRESS: String(perAddress), LOG_LEVEL: 'info' } })
})

const open = ({ url }: Part, bytes: string) => openSocket(Number(new URL(url).port), bytes)

function request(method: string, path: string, visitor?: Visitor, more = ''): string {
  const authorization = visitor ? `Authorization: Bearer ${visitor.session.accessGrant}\r\n` : ''
  return (
    `${method} /api/integrations/v1/widget${path} HTTP/1.1\r\nHost: x\r\nOrigin: ${stack.demo.origin}\r\n` +
    `X-Service-Widget-Version: 1.0\r\n${authorization}${more}\r\n`
  )
}

/** Number of open socket descriptors of a process. */
async function countSockets(part: Part): Promise<number> {
  const targets = await openFiles(part.process().pid)
  return targets.filter((target) => target.startsWith('socket:')).length
}

const newVisitor = (part: Part) => stack.newVisitor({ gatewayUrl: part.url })

async function untilSockets(part: Part, most: number, withinMs: number): Promise<number> {
  const started = performance.now()
  await until(`${most} sockets`, async () => (await countSockets(part)) <= most)
  const tookMs = performance.now() - started
  expect(tookMs).toBeLessThan(withinMs + slackMs)
  return tookMs
}

const connectBytes = 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n'

describe('clients that keep their side of a connection open', () => {
  it('use no socket of the gateway 5 s after their session was revoked', async () => {
    const gateway = stack.gateways[0]!
    const visitor = await newVisitor(gateway)
    const idle = await countSockets(gateway)
    const streams = Array.from({ length: 40 }, () => open(gateway, request('GET', '/events', visitor)))
    // A session may have six streams. Each further stream ends the oldest one.
    await until('the streams', () => streams.every((each) => each.isEnded() || each.text().includes(': open')))
    await untilSockets(gateway, idle + 6, endedWithinMs)
    const operator = stack.operator()
    await operator.sessions.revokeSession({ sessionId: visitor.session.sessionId })
    await until('the end', () => streams.every((each) => each.isEnded()))
    await untilSockets(gateway, idle, endedWithinMs)
  })

  it('use no socket of the gateway 5 s after they sent a pipelined stream, CONNECT, malformed HTTP or HTTP/1.0', async () => {
    const gateway = stack.gateways[0]!
    const visitor = await newVisitor(gateway)
    const events = request('GET', '/events', visitor)
    const idle = await countSockets(gateway)
    const clients = [events + events, connectBytes, 'not HTTP\r\n\r\n', 'GET /livez HTTP/1.0\r\n\r\n'].flatMap(
      (bytes) => Array.from({ length: 20 }, () => open(gateway, bytes)),
    )
    await until('the answers', () => clients.every((each) => each.isEnded()))
    await untilSockets(gateway, idle, endedWithinMs)
  })

  it('cannot exceed the limit of connections per address, and a rejected message is not stored', async () => {
    const gateway = stack.gateways[0]!
    const visitor = await newVisitor(gateway)
    const idle = await countSockets(gateway)
    const held = Array.from({ length: perAddress }, () => open(gateway, 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'))
    await until('answers or rejections', () => held.every((each) => each.isEnded() || each.text() !== ''))
    const body = JSON.stringify({ clientOperationId: 'refused', body: 'Hello', contentType: 'text' })
    const more = `Idempotency-Key: refused\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`
    const refused = Array.from({ length: 100 }, () => open(gateway, request('POST', '/messages', visitor, more) + body))
    await until('the refusals', () => refused.every((each) => each.isEnded()))
    expect(refused.map((each) => each.text().slice(0, 12)).filter((line) => !/^(HTTP\/1.1 429)?$/.test(line))).toEqual(
      [],
    )
    expect(await countSockets(gateway)).toBeLessThanOrEqual(idle + perAddress + refusedMax)
    for (const { socket } of [...held, ...refused]) socket.destroy()
    await untilSockets(gateway, idle, endedWithinMs)
    expect(await visitor.history()).toEqual([])
  })

  it('do not delay the shutdown of a gateway', async () => {
    const gateway = await stack.addGateway({ LOG_LEVEL: 'info' })
    const visitor = await newVisitor(gateway)
    const events = request('GET', '/events', visitor)
    const history = request('GET', '/messages', visitor)
    const clients = [
      ...[events, events + history, history + events, events + connectBytes, connectBytes, 'GET /livez HT', ''],
      `${request('POST', '/messages', visitor, 'Content-Length: 99\r\nContent-Type: application/json\r\n')}{`,
    ].map((bytes) => open(gateway, bytes))
    await until('the stream', () => clients[0]!.text().includes(': open') && clients[2]!.text().includes(': open'))
    const started = performance.now()
    gateway.process().kill('SIGTERM')
    expect(await gateway.process().exited).toMatchObject({ code: 0 })
    expect(performance.now() - started).toBeLessThan(4_000 + slackMs)
    await until('their ends', () => clients.every((each) => each.isEnded()))
  })
})
