import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, fetch as fetchWith } from 'undici'
import { beforeAll, describe, expect, it } from 'vitest'
import { memoryOf } from '../support/memory.ts'
import { type Stack, startStack } from '../support/stack.ts'
import type { Answer, Visitor } from '../support/visitor.ts'

const LARGE = '😀'.repeat(4_000)
const MESSAGES = 100
/** Calls that a session may make at once by its rate limits. */
const CALLS_BURST = 115
const SENDS_BURST = 10
const SESSIONS = 10
/** Bound of docs/operating.md for what such load adds to a gateway or a core. */
const GROWTH_MAX_MIB = 350

/** Requests from another client address, whose connections are counted apart. */
const elsewhere = new Agent({ connect: { localAddress: '127.0.0.2' } })
const fetchElsewhere = ((url: string, init: object) =>
  fetchWith(url, { ...init, dispatcher: elsewhere })) as unknown as typeof fetch

let stack: Stack
let attackers: Visitor[]
let bystander: Visitor
let quiet: Record<string, number>

beforeAll(async () => {
  stack = await startStack({ env: { RATE_LIMIT_REFUSALS_PER_MINUTE: '1000000', LOG_LEVEL: 'warn' } })
  attackers = []
  for (let index = 0; index < SESSIONS; index++) attackers.push(await stack.newVisitor())
  bystander = await stack.newVisitor({ fetch: fetchElsewhere })
  const { messaging } = stack.operator()
  for (const { session } of attackers)
    for (let index = 0; index < MESSAGES; index++)
      await messaging.sendAgentMessage({
        conversationId: session.conversationId,
        clientOperationId: `large-${index}`,
        body: LARGE,
      })
  const started = performance.now()
  for (let times = 0; times < 5; times++) await attackers[0]!.call('GET', '/messages?limit=100')
  console.info(`one page of history takes ${Math.round((performance.now() - started) / 5)} ms`)
  quiet = await memoryOf(stack)
}, 300_000)

const large = () => {
  const clientOperationId = randomUUID()
  return { clientOperationId, body: LARGE, contentType: 'text', locale: 'en' }
}

/** Stands for a request whose connection was refused: an address has too many. */
const connectionRefused = (): Answer => ({ status: 0, headers: new Headers(), body: undefined })

/** The dearest request of each route, and how often a session may make it at once. */
const requests: [name: string, times: number, request: (visitor: Visitor) => Promise<Answer>][] = [
  ['history from the start', CALLS_BURST, (visitor) => visitor.call('GET', '/messages?limit=100')],
  ['newest history', CALLS_BURST, (visitor) => visitor.call('GET', '/messages?limit=100&beforeSequence=2147483647')],
  [
    'sends',
    SENDS_BURST,
    (visitor) => {
      const body = large()
      return visitor.call('POST', '/messages', { body, headers: { 'Idempotency-Key': body.clientOperationId } })
    },
  ],
  ['typing', CALLS_BURST, (visitor) => visitor.call('POST', '/typing', { body: { state: 'started' } })],
  [
    'receipts',
    CALLS_BURST,
    (visitor) => visitor.call('POST', '/messages/receipts', { body: { upToSequence: MESSAGES, state: 'read' } }),
  ],
  [
    'page context',
    CALLS_BURST,
    (visitor) =>
      visitor.call('POST', '/context/page', {
        body: { url: `https://shop.example/?${'x'.repeat(2_000)}`, title: 'x'.repeat(500) },
        headers: { 'Idempotency-Key': randomUUID() },
      }),
  ],
  ['configuration', 20, (visitor) => visitor.call('GET', `/config/${stack.demo.siteKey}`)],
  [
    'streams from the start',
    6,
    async (visitor) => {
      const stream = await visitor.openStream({ after: 0 })
      stream.close()
      return { status: stream.status, headers: stream.headers, body: undefined }
    },
  ],
]

/** Sends as another visitor and probes readiness until `work` ends. */
async function whileProbing<T>(work: Promise<T>) {
  const gateway = stack.gateways[0]!.url
  let isOver = false
  const done = work.finally(() => {
    isOver = true
  })
  const sends: number[] = []
  const ready: number[] = []
  const statuses = new Set<string>()
  const peak: Record<string, number> = {}
  const repeat = async (step: () => Promise<void>) => {
    do await step()
    while (!isOver)
  }
  const timed = async (into: number[], call: () => Promise<number>) => {
    const started = performance.now()
    const status = await call()
    into.push(performance.now() - started)
    return status
  }
  await Promise.all([
    repeat(async () => {
      const status = await timed(sends, async () => (await bystander.send('Still here?')).status)
      // The rate limit of the session has refused the send at once, so it took no part in the load.
      if (status === 429) sends.pop()
      else statuses.add(`send ${status}`)
      await delay(500)
    }),
    repeat(async () => {
      statuses.add(`readyz ${await timed(ready, async () => (await fetchElsewhere(`${gateway}/readyz`)).status)}`)
    }),
    repeat(async () => {
      for (const [name, now] of Object.entries(await memoryOf(stack))) peak[name] = Math.max(peak[name] ?? 0, now)
    }),
  ])
  return { result: await done, statuses, peak, slowest: { send: Math.max(...sends), ready: Math.max(...ready) } }
}

describe.each([
  ['one session', 1],
  ['ten sessions of one address', SESSIONS],
])('the dearest requests of %s', (_, sessions) => {
  it.each(requests)(
    '%s are answered or refused with Retry-After, and nothing else stops',
    { timeout: 180_000 },
    async (name, times, request) => {
      const load = attackers
        .slice(0, sessions)
        .flatMap((visitor) => Array.from({ length: times }, () => request(visitor).catch(connectionRefused)))
      const { result, statuses, peak, slowest } = await whileProbing(Promise.all(load))
      const count = (status: number) => result.filter((answer) => answer.status === status).length
      const refused = count(connectionRefused().status)
      const good = result.filter(({ status }) => status >= 200 && status < 300).length
      console.info(
        `${name} × ${load.length}: ${good} answered, ${count(429)} × 429, ${count(503)} × 503, ${refused} connections refused; ` +
          `slowest send ${Math.round(slowest.send)} ms, readiness ${Math.round(slowest.ready)} ms; ` +
          `peak ${JSON.stringify(peak)} MiB, quiet ${JSON.stringify(quiet)}`,
      )
      expect([...statuses].filter((each) => each !== 'send 202' && each !== 'readyz 200')).toEqual([])
      // Load of an earlier case may have used the rate limit of a session.
      expect(good + count(429) + count(503) + refused).toBe(result.length)
      // An address may have 500 connections.
      if (sessions === 1) expect(refused).toBe(0)
      for (const { status, headers } of result)
        if (status >= 400) expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
      for (const [part, held] of Object.entries(quiet)) expect(peak[part]! - held, part).toBeLessThan(GROWTH_MAX_MIB)
    },
  )
})
