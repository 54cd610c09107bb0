import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { type LocalStack, startLocalStack } from '../support/local-stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor } from '../support/visitor.ts'
import { configFile, hasNginx, nginx, startNginx } from './nginx.ts'

if (!hasNginx) console.info('nginx is not installed; skipping the test of its configuration')

const database = testDatabase()
let stack: LocalStack
let proxyUrl: string
/** @param cdn address of a CDN in front of the proxy */
const startProxy = (cdn?: string) =>
  startNginx({
    port: Number(new URL(stack.gateways[0]!.url).port),
    addresses: () => ['127.0.0.1'],
    edit: (text) =>
      cdn === undefined ? text : text.replace(/^ *#((?:set_)?real_ip_.*)$/gm, '$1').replace('192.0.2.0/24', cdn),
  })

interface From {
  /** Address from which the client connects, in 127.0.0.0/8. */
  from: string
  /** Value of `X-Forwarded-For` that the client sends. */
  forged?: string
  via?: string
}

/** Sends a request of a page from another client address. Returns the code of the answer, or `ok`. */
async function codeOf(path: string, { from, forged, via = proxyUrl }: From, body?: object): Promise<string> {
  const sent = request(`${via}/api/integrations/v1/widget${path}`, {
    method: body ? 'POST' : 'GET',
    localAddress: from,
    headers: {
      origin: stack.demo.origin,
      'x-service-widget-version': '1.0',
      ...(forged && { 'x-forwarded-for': forged }),
      ...(body && { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
    },
  })
  sent.end(body && JSON.stringify(body))
  const [answer] = await once(sent, 'response')
  const text = Buffer.concat(await answer.toArray()).toString()
  return answer.statusCode < 300 ? 'ok' : JSON.parse(text).code
}

const config = (client: From) => codeOf(`/config/${stack.demo.siteKey}`, client)
const begin = (client: From) =>
  codeOf('/sessions', client, { publicSiteKey: stack.demo.siteKey, clientInstanceId: randomUUID() })
/** Requests the configuration until the limit of the address is reached. */
const exhaust = (client: (attempt: number) => From) => {
  let attempt = 0
  return until('the limit', async () => (await config(client(attempt++))) === 'RateLimited')
}

describe.skipIf(!hasNginx)('the proxy of compose.yaml, in front of a gateway', () => {
  beforeAll(async () => {
    stack = await startLocalStack({
      database,
      cores: 1,
      env: { TRUST_PROXY: '1', RATE_LIMIT_CONFIG_PER_MINUTE: '5' },
    })
    proxyUrl = await startProxy()
  })

  it('nginx accepts the file as it is shipped', async () => {
    await promisify(execFile)(nginx, ['-t', '-c', configFile, '-e', 'stderr', '-g', `pid ${stack.dataDir}/pid;`])
  })

  it('the proxy of compose.yaml forwards events without buffering, and forwards each message once', async () => {
    const { origin, siteKey } = stack.demo
    const visitor = await startVisitor({ gatewayUrl: proxyUrl, origin, siteKey })
    const stream = await visitor.openStream()
    expect(stream.headers.get('content-type')).toContain('text/event-stream')
    // The event must arrive while the stream is still open. A buffering proxy would delay the event.
    expect((await visitor.send('One')).status).toBe(202)
    await until('the first event', () => stream.events.length === 1)
    expect((await visitor.send('Two')).status).toBe(202)
    await until('the second event', () => stream.events.length === 2)
    stream.close()
    expect(await visitor.history()).toHaveLength(2)
  })

  it('a rate limit counts the client behind the proxy, whatever X-Forwarded-For it sends', async () => {
    await exhaust((attempt) => ({ from: '127.0.0.11', forged: `203.0.113.${attempt % 250}` }))
    expect(await config({ from: '127.0.0.12' })).toBe('ok')
    expect(await config({ from: '127.0.0.12', forged: '127.0.0.11' })).toBe('ok')
  })

  it('an address ban affects the client behind the proxy, whatever X-Forwarded-For it sends', async () => {
    const visitor = await stack.newVisitor({ gatewayUrl: proxyUrl })
    const { sessionId } = visitor.session
    await stack.operator().sessions.banVisitor({ sessionId, reason: 'x', addressBanSeconds: 3600 })
    expect(await begin({ from: '127.0.0.1' })).toBe('VisitorBanned')
    expect(await begin({ from: '127.0.0.1', forged: '127.0.0.21' })).toBe('VisitorBanned')
    expect(await begin({ from: '127.0.0.21' })).toBe('ok')
    expect(await begin({ from: '127.0.0.21', forged: '127.0.0.1' })).toBe('ok')
    await stack.operator().sessions.unbanVisitor({ sessionId })
  })

  it('a gateway with the address of its proxy in TRUST_PROXY ignores X-Forwarded-For from other addresses', async () => {
    const { url: via } = await stack.addGateway({ TRUST_PROXY: '127.0.0.31', RATE_LIMIT_CONFIG_PER_MINUTE: '5' })
    await exhaust((attempt) => ({ from: '127.0.0.32', forged: `203.0.113.${attempt % 250}`, via }))
    expect(await config({ from: '127.0.0.31', forged: '203.0.113.99', via })).toBe('ok')
  })

  it('a proxy with the address of its CDN in its configuration takes the client’s address from the CDN only', async () => {
    const via = await startProxy('127.0.0.41')
    await exhaust((attempt) => ({ from: '127.0.0.42', forged: `203.0.113.${attempt % 250}`, via }))
    await exhaust(() => ({ from: '127.0.0.41', forged: '203.0.113.1', via }))
    expect(await config({ from: '127.0.0.41', forged: '203.0.113.2', via })).toBe('ok')
    // A client behind the CDN can only add addresses in front of its own address.
    expect(await config({ from: '127.0.0.41', forged: '198.51.100.1, 203.0.113.1', via })).toBe('RateLimited')
  })
})
