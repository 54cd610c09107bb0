import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, test } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { message, startTestGateway } from '../test/test-gateway.ts'

/** A long timeout, because other tests may use the CPU. */
const patience = { timeout: 30_000 }

describe('messages', () => {
  test('are batched if they arrive concurrently, and each gets its own answer', async () => {
    const { call, core, waitingSends } = await startTestGateway({ env: { RATE_LIMIT_FACTOR: '1000' } })
    core.grants.set('grant-2', 'ok')
    await call('GET', '/messages')
    await call('GET', '/messages', { headers: { authorization: 'Bearer grant-2' } })
    core.grants.set('grant-2', 'VisitorBanned')
    const release = Promise.withResolvers<void>()
    const answer = core.onSend
    core.onSend = async (request) => {
      await release.promise
      return answer(request)
    }
    const sends = Array.from({ length: 200 }, (_, index) => {
      const id = `op-${index}`
      const authorization = index % 10 === 3 ? 'Bearer grant-2' : 'Bearer grant-1'
      return call('POST', '/messages', { headers: { 'idempotency-key': id, authorization }, body: message(id) })
    })
    await expect.poll(() => core.count('sendVisitorMessages'), patience).toBe(2)
    const underWay = core.calls.flatMap(({ request }) => (request as { messages?: unknown[] })?.messages ?? []).length
    await expect.poll(waitingSends, patience).toBe(sends.length - underWay)
    release.resolve()
    for (const [index, sent] of (await Promise.all(sends)).entries()) {
      const refused = index % 10 === 3
      expect(sent.status).toBe(refused ? 403 : 202)
      expect(await sent.json()).toMatchObject(refused ? { code: 'VisitorBanned' } : { messageId: `msg_op-${index}` })
    }
    expect(core.count('sendVisitorMessages')).toBeLessThan(10)
  })

  test('all get a retryable 503 if the call of their batch fails', async () => {
    const { call, core } = await startTestGateway()
    await call('GET', '/messages')
    core.refuseNext = new ConnectError('broken', Code.Internal)
    const response = await call('POST', '/messages', { body: message() })
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toBe('1')
    expect(await response.json()).toMatchObject({ code: 'ServiceUnavailable', retryable: true, retryAfter: 1 })
  })

  test('get 503 at once if the queue is full', async () => {
    const { call, core } = await startTestGateway({ env: { SEND_QUEUE_MAX: '1' } })
    await call('GET', '/messages')
    const release = Promise.withResolvers<void>()
    const answer = core.onSend
    core.onSend = async (request) => {
      await release.promise
      return answer(request)
    }
    const send = (id: string) => call('POST', '/messages', { headers: { 'idempotency-key': id }, body: message(id) })
    const first = send('op-1')
    await expect.poll(() => core.count('sendVisitorMessages')).toBe(1)
    const second = send('op-2')
    await expect.poll(() => core.count('sendVisitorMessages')).toBe(2)
    const others = [send('op-3'), send('op-4')]
    expect((await Promise.race(others)).status).toBe(503)
    release.resolve()
    const statuses = await Promise.all([first, second, ...others].map(async (response) => (await response).status))
    expect(statuses.sort()).toEqual([202, 202, 202, 503])
  })

  itLong('get 503 and are not sent to a core if they wait too long in the queue', async () => {
    const env = { CORE_DEADLINE_MS: '2000' }
    const { call, core, clock, waitingSends } = await startTestGateway({ env })
    const { promise: never } = Promise.withResolvers<never>()
    core.onSend = () => never
    const send = (id: string) =>
      call('POST', '/messages', { body: message(id), headers: { 'idempotency-key': id } }).then(({ status }) => status)
    const first = send('op-1')
    await expect.poll(() => core.count('sendVisitorMessages')).toBe(1)
    const second = send('op-2')
    await expect.poll(() => core.count('sendVisitorMessages')).toBe(2)
    const late = send('op-3')
    await expect.poll(waitingSends, patience).toBe(1)
    clock.advance(2_000)
    expect([await first, await second, await late]).toEqual([503, 503, 503])
    expect(core.count('sendVisitorMessages')).toBe(2)
  })
})
