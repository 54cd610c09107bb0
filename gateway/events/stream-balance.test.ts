import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { forAll } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { infoOf } from '../test/core-answers.ts'
import { createTestCore } from '../test/test-core.ts'
import { startTestGateway } from '../test/test-gateway.ts'
import { eventFrame } from '../test/test-link.ts'
import { ids, openStream } from '../test/test-streams.ts'
import { planMove } from './event-hub.ts'

describe('the plan of moves', () => {
  it.each([[[]], [[5]], [[0, 10]], [[1000, 1100]], [[7, 7, 7]]])('leaves %j as it is', (sizes) => {
    expect(planMove(sizes)).toBeUndefined()
  })

  it('moves at most 20 streams at once, and fewer if the numbers are close', () => {
    expect(planMove([2000, 0])).toEqual({ from: 0, to: 1, count: 20 })
    expect(planMove([0, 11])).toEqual({ from: 1, to: 0, count: 6 })
  })

  it('moves streams until all cores have similar numbers, and loses none', () => {
    const someSizes = fc.array(fc.nat(3000), { minLength: 2, maxLength: 6 })
    forAll([someSizes], runs(400, 4), (before) => {
      const sizes = [...before]
      let moves = 0
      for (let move = planMove(sizes); move; move = planMove(sizes)) {
        sizes[move.from]! -= move.count
        sizes[move.to]! += move.count
        moves += 1
        expect(moves).toBeLessThan(3000)
      }
      const sum = (all: number[]) => all.reduce((total, size) => total + size, 0)
      expect(sum(sizes)).toBe(sum(before))
      expect(Math.min(...sizes)).toBeGreaterThanOrEqual(0)
      expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(
        Math.max(10, (0.1 * sum(sizes)) / sizes.length),
      )
    })
  })
})

/** Starts two cores of which one returns after all streams have moved to the other. */
async function withReturnedCore(count: number) {
  const cores = [createTestCore(), createTestCore()] as const
  const [first, second] = cores
  first.down = true
  const gateway = await startTestGateway({ cores: [...cores], env: { STREAMS_PER_SESSION: '100' } })
  await expect.poll(() => second.links.length).toBe(1)
  const streams = await Promise.all(Array.from({ length: count }, () => openStream(gateway)))
  expect(second.links[0]!.open.size).toBe(count)
  first.down = false
  await expect.poll(() => first.links.length, { timeout: 10_000 }).toBe(1)
  const sizes = () => cores.map(({ links }) => links[0]?.open.size ?? 0)
  return { gateway, first, second, streams, sizes }
}

describe('a core that returns', () => {
  test('gets streams of the other core, which stay open and miss and repeat no event', async () => {
    const { gateway, first, second, streams, sizes } = await withReturnedCore(60)
    // Both cores have the same log, like real ones, and send its events to their own streams.
    const publish = () => {
      second.publish('message.received')
      first.log = second.log
      const [link] = first.links
      link!.push(eventFrame([...link!.open.keys()], second.log.at(-1)!))
    }
    for (let ticks = 0; ticks < 3; ticks += 1) {
      publish()
      gateway.clock.advance(1_000)
      await expect.poll(() => sizes()[0]).toBeGreaterThan(0)
    }
    const balanced = () => {
      gateway.clock.advance(1_000)
      return Math.abs(sizes()[0]! - sizes()[1]!)
    }
    await expect.poll(balanced).toBeLessThanOrEqual(10)
    expect(sizes()[0]! + sizes()[1]!).toBe(60)
    publish()
    for (const stream of streams) {
      await expect.poll(() => ids(stream)).toEqual(['e1-1', 'e1-2', 'e1-3', 'e1-4'])
      expect([stream.ended, stream.broken]).toEqual([false, false])
    }
  })

  test('gets no more streams while it refuses them, and none of them ends', async () => {
    const { gateway, first, second, streams } = await withReturnedCore(60)
    let asked = 0
    first.onSubscribe = (link, { subscriptionId }) => {
      asked += 1
      link.push({ case: 'closed', value: { subscriptionId, error: infoOf('ServiceUnavailable') } })
    }
    const refused = () => {
      gateway.clock.advance(1_000)
      return asked
    }
    await expect.poll(refused).toBeGreaterThan(0)
    second.publish('message.received')
    for (const stream of streams) {
      const received = () => {
        gateway.clock.advance(1_000)
        return ids(stream)
      }
      await expect.poll(received).toEqual(['e1-1'])
    }
    for (const stream of streams) expect([stream.ended, stream.broken]).toEqual([false, false])
  })
})
