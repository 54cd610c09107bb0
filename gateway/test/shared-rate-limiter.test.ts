import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../test/support/processes.ts'
import { until } from '../../test/support/until.ts'
import { readConfig } from '../config.ts'
import { createRateLimiter } from '../limits/rate-limiter.ts'
import { createSharedBuckets } from '../limits/shared-rate-limiter.ts'
import { message, startTestGateway, type TestGateway } from './test-gateway.ts'

const hasRedis = spawnSync('redis-server', ['--version']).status === 0
if (!hasRedis) console.warn('no redis-server on the PATH; skipping the tests of shared rate limits')

const running = new Set<ChildProcess>()
afterAll(() => {
  for (const redis of running) redis.kill('SIGKILL')
})

async function startRedis(port: number): Promise<ChildProcess> {
  const options = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--requirepass', 'hush']
  const redis = spawn('redis-server', ['--port', String(port), ...options], { stdio: 'ignore' })
  running.add(redis)
  const client = new Redis(urlOf(port), { lazyConnect: true, retryStrategy: () => 20 })
  client.on('error', () => {})
  await until('redis', () => client.ping().catch(() => undefined))
  client.disconnect()
  return redis
}

async function stop(redis: ChildProcess) {
  redis.kill('SIGKILL')
  await once(redis, 'exit')
  running.delete(redis)
}

const urlOf = (port: number) => `redis://:hush@127.0.0.1:${port}`

const send = async ({ call }: TestGateway, index: number) => {
  const id = `op-${index}`
  return call('POST', '/messages', { headers: { 'idempotency-key': id }, body: message(id) })
}

async function sends(gateways: TestGateway[], count: number) {
  const statuses: number[] = []
  for (let index = 0; index < count; index++) {
    const response = await send(gateways[index % gateways.length]!, index)
    statuses.push(response.status)
    await response.text()
  }
  return statuses
}

const accepted = (statuses: number[]) => statuses.filter((status) => status === 202).length

describe.runIf(hasRedis)('gateways with one Redis', () => {
  test('share one bucket and return the time until the next token', async () => {
    const port = await freePort()
    await startRedis(port)
    const env = { RATE_LIMIT_REDIS_URL: urlOf(port) }
    const gateways = [await startTestGateway({ env }), await startTestGateway({ env })]
    expect(accepted(await sends(gateways, 10))).toBe(10)
    for (const gateway of gateways) {
      const refused = await send(gateway, 99)
      expect(refused.status).toBe(429)
      expect(refused.headers.get('retry-after')).toMatch(/^[12]$/)
      expect(await refused.json()).toMatchObject({ code: 'RateLimited', retryable: true, terminal: false })
    }
  })

  test('keep a separate bucket for each session and each limit', async () => {
    const port = await freePort()
    await startRedis(port)
    const gateway = await startTestGateway({ env: { RATE_LIMIT_REDIS_URL: urlOf(port) } })
    gateway.core.grants.set('grant-2', 'ok')
    expect(accepted(await sends([gateway], 12))).toBe(10)
    expect((await gateway.call('GET', '/messages')).status).toBe(200)
    const other = { authorization: 'Bearer grant-2', 'idempotency-key': 'op-0' }
    expect((await gateway.call('POST', '/messages', { headers: other, body: message('op-0') })).status).toBe(202)
  })

  test('refill a bucket over time and delete it when it is full', async () => {
    const port = await freePort()
    await startRedis(port)
    const buckets = createSharedBuckets({ url: urlOf(port), now: Date.now, logger: console })
    onTestFinished(buckets.close)
    await buckets.start()
    const local = { take: () => 99, giveBack() {} }
    // A limit of 60 per minute refills a token per second.
    const limiter = buckets.limiter({ name: 'test', perMinute: 60, burst: 3, local })
    const began = performance.now()
    const decisions = await Promise.all(Array.from({ length: 6 }, () => limiter.take('one')))
    const refilled = Math.floor((performance.now() - began) / 1_000)
    const allowed = decisions.filter((retryAfter) => retryAfter === 0).length
    expect(allowed).toBeGreaterThanOrEqual(3)
    expect(allowed).toBeLessThanOrEqual(3 + refilled)
    if (refilled === 0) expect(decisions.at(-1)).toBe(1)
    await until('a token', async () => (await limiter.take('one')) === 0)
    const client = new Redis(urlOf(port))
    onTestFinished(() => client.disconnect())
    const [key] = await client.keys('service:rate:*')
    expect(key).toBe('service:rate:test:one')
    expect(await client.pttl(key!)).toBeLessThanOrEqual(4_001)
  })

  test('use their local buckets while Redis is down, and the shared buckets afterwards', async () => {
    const port = await freePort()
    const redis = await startRedis(port)
    const env = { RATE_LIMIT_REDIS_URL: urlOf(port) }
    const gateways = [await startTestGateway({ env }), await startTestGateway({ env })]
    expect(accepted(await sends(gateways, 4))).toBe(4)
    await stop(redis)
    for (const gateway of gateways) expect(accepted(await sends([gateway], 12))).toBe(10)
    const warned = gateways[0]!.lines.filter((line) => line.includes('using local limits'))
    expect(warned).toHaveLength(1)
    await startRedis(port)
    await until('the gateway to use Redis again', async () => {
      gateways[0]!.clock.advance(1_000)
      await send(gateways[0]!, 1)
      return gateways[0]!.lines.some((line) => line.includes('store is reachable again'))
    })
    expect(gateways[0]!.lines.join('')).not.toContain('hush')
  })
})

describe('rate limits without a working Redis', () => {
  test('use the local buckets if Redis is unreachable, and log one warning', async () => {
    const gateway = await startTestGateway({ env: { RATE_LIMIT_REDIS_URL: urlOf(await freePort()) } })
    expect(accepted(await sends([gateway], 12))).toBe(10)
    // The gateway asks Redis again, which fails again.
    gateway.clock.advance(60_000)
    expect(accepted(await sends([gateway], 1))).toBe(1)
    expect(gateway.lines.filter((line) => line.includes('using local limits'))).toHaveLength(1)
    expect(gateway.lines.join('')).not.toContain('hush')
  })

  test('do not delay requests if Redis never answers', async () => {
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => void sockets.add(socket.on('error', () => {}))).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      silent.close()
    })
    const { port } = silent.address() as AddressInfo
    const gateway = await startTestGateway({ env: { RATE_LIMIT_REDIS_URL: urlOf(port) } })
    const started = performance.now()
    expect(accepted(await sends([gateway], 12))).toBe(10)
    expect(performance.now() - started).toBeLessThan(3_000)
  })

  test('use one local bucket per key if Redis was never reachable', async () => {
    const now = () => 0
    const local = createRateLimiter({ perMinute: 30, burst: 2, keysMax: 10, now })
    const buckets = createSharedBuckets({ url: urlOf(await freePort()), now, logger: { warn() {}, info() {} } })
    onTestFinished(buckets.close)
    const limiter = buckets.limiter({ name: 'test', perMinute: 30, burst: 2, local })
    const decisions = [
      await limiter.take('a'),
      await limiter.take('a'),
      await limiter.take('a'),
      await limiter.take('b'),
    ]
    expect(decisions.map((retryAfter) => retryAfter === 0)).toEqual([true, true, false, true])
  })
})

test.each(['http://redis', 'localhost:6379', 'redis://', 'hush'])(
  'readConfig rejects RATE_LIMIT_REDIS_URL=%s with an error that describes a valid URL',
  (url) => {
    const read = () => readConfig({ CORE_TOKEN: 'service-token-of-tests', RATE_LIMIT_REDIS_URL: url })
    expect(read).toThrow('RATE_LIMIT_REDIS_URL must be a redis or rediss URL with a host')
  },
)
