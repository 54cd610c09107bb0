import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { memoryOf } from '../support/memory.ts'
import { freePort, startProcess } from '../support/processes.ts'
import { startStack } from '../support/stack.ts'
import { until } from '../support/until.ts'
import { type Answer, startVisitor, type Visitor } from '../support/visitor.ts'

const visitors = 20
const sendsEach = 8
const readsEach = 20
const growthMaxMiB = 150

function expectAnswered(answers: Answer[]) {
  for (const { status, headers, body } of answers) {
    expect([200, 202, 503]).toContain(status)
    if (status !== 503) continue
    expect(body).toMatchObject({ code: 'ServiceUnavailable', retryable: true, terminal: false })
    expect(headers.get('retry-after')).toBe(String(body.retryAfter))
  }
}

it('requests get 503 without memory growth while the database is suspended, and succeed after it resumes', async () => {
  const stack = await startStack({
    env: {
      LOG_LEVEL: 'info',
      RATE_LIMIT_FACTOR: '1000',
      CORE_CALLS_MAX: '50',
      CALLS_MAX: '40',
      SEND_QUEUE_MAX: '50',
      CORE_DEADLINE_MS: '3000',
    },
  })
  const { origin, siteKey } = stack.demo
  const gatewayUrl = stack.gateways[0]!.url
  // Creates the sessions one after the other, because the service would reject so many simultaneous creations.
  const browsers: Visitor[] = []
  for (let index = 0; index < visitors; index += 1) browsers.push(await startVisitor({ gatewayUrl, origin, siteKey }))
  for (const visitor of browsers) expect((await visitor.sendUntilAccepted('Before')).status).toBe(202)
  const before = await memoryOf(stack)
  const pid = stack.enginePid()
  process.kill(pid, 'SIGSTOP')
  try {
    const load = (visitor: Visitor) => [
      ...Array.from({ length: sendsEach }, (_, index) => visitor.send(`While it stands ${index}`)),
      ...Array.from({ length: readsEach }, () => visitor.call('GET', '/messages')),
    ]
    const answers = await Promise.all(browsers.flatMap(load))
    expectAnswered(answers)
    // The service may acknowledge a message only after it has stored the message.
    expect(answers.filter(({ status }) => status === 202)).toEqual([])
    expect(answers.filter(({ status }) => status === 503).length).toBeGreaterThan(visitors * sendsEach)
    const after = await memoryOf(stack)
    for (const [name, held] of Object.entries(before)) expect(after[name]! - held, name).toBeLessThan(growthMaxMiB)
    // Routes that do not need the database must still answer.
    expect((await fetch(`${gatewayUrl}/livez`)).status).toBe(200)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  for (const visitor of browsers.slice(0, 5)) {
    expect((await visitor.sendUntilAccepted('After')).status).toBe(202)
    const history = await until('the history', () => visitor.history().catch(() => undefined))
    expect([history[0].body, history.at(-1).body]).toEqual(['Before', 'After'])
  }
})

async function startGatewayAlone() {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const env = {
    GATEWAY_PORT: String(port),
    CORE_URLS: `http://127.0.0.1:${await freePort()}`,
    CORE_TOKEN: 'an-unused-core-token',
    LOG_LEVEL: 'warn',
    // The deadline exceeds the test's timeout, so that the test fails if a request waits for the deadline.
    CORE_DEADLINE_MS: '120000',
  }
  const running = await startProcess({ entry: 'gateway/main.ts', name: 'gateway', env, readyUrl: `${url}/livez` })
  return { port, url, running }
}

it('a gateway without a core responds with 503 immediately', async () => {
  const { url } = await startGatewayAlone()
  await delay(100)
  const headers = { origin: 'https://shop.example', 'x-service-widget-version': '1.0', authorization: 'Bearer a.b.c' }
  for (const path of ['/config/pk_demo', '/messages', '/events']) {
    const answer = await fetch(`${url}/api/integrations/v1/widget${path}`, { headers })
    expect([path, answer.status, answer.headers.get('retry-after')]).toEqual([path, 503, '1'])
    expect(await answer.json()).toMatchObject({ code: 'ServiceUnavailable', retryable: true })
  }
  expect((await fetch(`${url}/readyz`)).status).toBe(503)
})

const atOnce = 600
const systemAllows = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'))

it.skipIf(systemAllows < atOnce)('a busy gateway queues 600 simultaneous connections', async () => {
  const { port, running } = await startGatewayAlone()
  running.kill('SIGSTOP')
  const sockets = Array.from({ length: atOnce }, () => connect(port, '127.0.0.1'))
  let connected = 0
  for (const socket of sockets) socket.on('error', () => {}).once('connect', () => (connected += 1))
  try {
    await until('every connection', () => connected === atOnce)
  } finally {
    for (const socket of sockets) socket.destroy()
    running.kill('SIGCONT')
  }
})
