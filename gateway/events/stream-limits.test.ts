import { describe, expect, test } from 'vitest'
import { refusal } from '../test/core-answers.ts'
import { startTestGateway, type TestGateway } from '../test/test-gateway.ts'
import { ids, openStream } from '../test/test-streams.ts'

/**
 * Advances the clock in steps, between which written bytes leave the process. In one long step, a
 * heartbeat would remain unsent, and the gateway would treat the reader as one that does not read.
 */
async function passTime({ clock }: TestGateway, ms: number) {
  for (let passed = 0; passed < ms; passed += 15_000) {
    clock.advance(15_000)
    await new Promise(setImmediate)
  }
}

describe('heartbeats', () => {
  test('send the position of the stream every 15 s; the position includes events that this stream does not get', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    gateway.core.publish('message.received')
    const link = gateway.core.links[0]!
    link.push({ case: 'advanced', value: { subscriptionIds: [...link.open.keys()], sequence: 5 } })
    gateway.core.log.push(...[2, 3, 4, 5].map((sequence) => ({ sequence, type: 'typing.started', json: '{}' })))
    gateway.core.publish('message.received')
    await expect.poll(() => ids(stream)).toEqual(['e1-1', 'e1-6'])
    gateway.clock.advance(14_000)
    gateway.clock.advance(1_000)
    await expect.poll(() => stream.comments).toEqual(['open', 'hb 6'])
    gateway.clock.advance(30_000)
    await expect.poll(() => stream.comments).toEqual(['open', 'hb 6', 'hb 6', 'hb 6'])
  })

  test('are not sent while no core serves the stream', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    gateway.core.down = true
    gateway.core.links[0]!.break()
    await expect.poll(() => gateway.core.links.length).toBe(0)
    await expect.poll(() => gateway.lines.join('')).toContain('event link is down')
    gateway.clock.advance(20_000)
    gateway.core.down = false
    await expect.poll(() => gateway.core.links[0]?.open.size).toBe(1)
    gateway.core.publish('message.received')
    await expect.poll(() => ids(stream)).toEqual(['e1-1'])
    expect(stream.comments).toEqual(['open'])
    expect(stream.ended).toBe(false)
  })
})

describe('stream limits', () => {
  test('a stream ends within 30 minutes', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    await passTime(gateway, 24 * 60_000)
    await expect.poll(() => stream.comments.length).toBe(1 + 24 * 4)
    expect(stream.ended).toBe(false)
    await passTime(gateway, 6 * 60_000)
    await expect.poll(() => stream.ended).toBe(true)
  })

  test('opening a stream counts towards the limit of calls per session', async () => {
    const gateway = await startTestGateway({ env: { RATE_LIMIT_CALLS_PER_MINUTE: '1' } })
    expect((await openStream(gateway)).response.status).toBe(200)
    expect((await openStream(gateway)).response.status).toBe(429)
  })

  test('a request with a rejected grant opens no stream', async () => {
    const gateway = await startTestGateway()
    gateway.core.refuseNext = undefined
    await gateway.call('GET', '/messages')
    gateway.core.refuseNext = refusal('GrantInvalid')
    const { response } = await openStream(gateway, '/events', { authorization: 'Bearer forged' })
    expect([response.status, await response.json()]).toMatchObject([401, { code: 'GrantInvalid' }])
    expect(gateway.core.links[0]!.subscribed).toHaveLength(0)
  })
})
