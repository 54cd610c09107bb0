import { describe, expect, test } from 'vitest'
import { infoOf } from '../test/core-answers.ts'
import { createTestCore } from '../test/test-core.ts'
import { startTestGateway } from '../test/test-gateway.ts'
import { ids, openStream } from '../test/test-streams.ts'

describe('loss of the connection to a core', () => {
  test('ends no stream, and no event is lost or sent twice', async () => {
    const gateway = await startTestGateway()
    const { core } = gateway
    const streams = [await openStream(gateway), await openStream(gateway)]
    core.publish('message.received')
    core.publish('message.received')
    for (const stream of streams) await expect.poll(() => ids(stream)).toHaveLength(2)
    core.links[0]!.break()
    await expect.poll(() => core.links.length).toBe(0)
    core.publish('message.received')
    await expect.poll(() => core.links[0]?.subscribed.length).toBe(2)
    expect(core.links[0]!.subscribed).toMatchObject([
      { resumed: true, lastEventId: 'e1-2' },
      { resumed: true, lastEventId: 'e1-2' },
    ])
    core.publish('message.received')
    for (const stream of streams) {
      await expect.poll(() => ids(stream)).toEqual(['e1-1', 'e1-2', 'e1-3', 'e1-4'])
      expect([stream.ended, stream.broken]).toEqual([false, false])
    }
  })

  test('causes no duplicate events if the core sends old events again', async () => {
    const gateway = await startTestGateway()
    const { core } = gateway
    const stream = await openStream(gateway)
    core.publish('message.received')
    core.publish('message.received')
    await expect.poll(() => ids(stream)).toHaveLength(2)
    core.onSubscribe = (link, { subscriptionId }) => {
      link.push({ case: 'opened', value: { subscriptionId, sessionId: 'ses_1', epoch: 'e1', sequence: 0 } })
      for (const sequence of [1, 2, 3, 3]) {
        const value = {
          subscriptionIds: [subscriptionId],
          id: `e1-${sequence}`,
          sequence,
          type: 'message.received',
          json: '{}',
        }
        link.push({ case: 'event', value })
      }
    }
    core.links[0]!.break()
    await expect.poll(() => ids(stream)).toEqual(['e1-1', 'e1-2', 'e1-3'])
  })

  test('causes no second end event if the connection is lost before the core has closed the stream', async () => {
    const gateway = await startTestGateway()
    const { core } = gateway
    const stream = await openStream(gateway)
    core.publish('message.received')
    const end = (link: (typeof core.links)[number], subscriptionId: number) => {
      const ending = { id: 'e1-2', sequence: 2, type: 'session.closed', json: '{}' }
      link.push({ case: 'event', value: { subscriptionIds: [subscriptionId], ...ending } })
    }
    const [link] = core.links
    end(link!, [...link!.open.keys()][0]!)
    await expect.poll(() => ids(stream)).toEqual(['e1-1', 'e1-2'])
    core.onSubscribe = (next, { subscriptionId }) => {
      next.push({ case: 'opened', value: { subscriptionId, sessionId: 'ses_1', epoch: 'e1', sequence: 2 } })
      end(next, subscriptionId)
      next.push({ case: 'closed', value: { subscriptionId } })
    }
    link!.break()
    await expect.poll(() => stream.ended).toBe(true)
    expect(ids(stream)).toEqual(['e1-1', 'e1-2'])
  })

  test('moves the streams of the core to another core if it stays unreachable', async () => {
    const cores = [createTestCore(), createTestCore()]
    const gateway = await startTestGateway({ cores })
    await expect.poll(() => cores.every(({ links }) => links.length === 1)).toBe(true)
    const streams = [await openStream(gateway), await openStream(gateway)]
    expect(cores.map(({ links }) => links[0]!.open.size)).toEqual([1, 1])
    cores[0]!.down = true
    cores[0]!.links[0]!.break()
    await expect.poll(() => cores[1]!.links[0]!.open.size).toBe(2)
    cores[1]!.publish('message.received')
    for (const stream of streams) await expect.poll(() => ids(stream)).toEqual(['e1-1'])
  })

  test('ends the streams after 30 s without any core, and new streams get 503 at once', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    gateway.core.down = true
    gateway.core.links[0]!.break()
    await expect.poll(() => gateway.core.links.length).toBe(0)
    await expect.poll(async () => (await openStream(gateway)).response.status, { interval: 100 }).toBe(503)
    gateway.clock.advance(29_000)
    expect(stream.ended).toBe(false)
    gateway.clock.advance(2_000)
    await expect.poll(() => stream.ended).toBe(true)
  })

  test('keeps a stream if the core fails to resume it with a retryable error', async () => {
    const gateway = await startTestGateway()
    const { core } = gateway
    const stream = await openStream(gateway)
    const open = core.onSubscribe
    core.onSubscribe = (link, { subscriptionId }) =>
      link.push({ case: 'closed', value: { subscriptionId, error: infoOf('ServiceUnavailable') } })
    core.links[0]!.break()
    await expect.poll(() => core.links[0]?.subscribed.length).toBe(1)
    core.onSubscribe = open
    const openAfterATick = () => {
      gateway.clock.advance(1_000)
      return core.links[0]!.open.size
    }
    await expect.poll(openAfterATick).toBe(1)
    core.publish('message.received')
    await expect.poll(() => ids(stream)).toEqual(['e1-1'])
  })

  test('ends a stream whose session ended during the outage', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    gateway.core.grants.set('grant-1', 'SessionRevoked')
    gateway.core.links[0]!.break()
    await expect.poll(() => stream.ended).toBe(true)
    const line = () => gateway.lines.map((each) => JSON.parse(each)).find(({ msg }) => msg === 'event stream ended')
    await expect.poll(line).toMatchObject({
      reason: 'SessionRevoked',
      correlationId: stream.response.headers.get('x-correlation-id'),
    })
    // The session of the test core is named after its grant.
    expect(gateway.lines.join('').replaceAll('ses_grant-1', '')).not.toContain('grant-1')
  })
})
