import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { testDeliveries } from '../test/deliveries.ts'
import { reserveRequests } from './claims.ts'

const test = testDeliveries({ started: true })

describe('a rate limit', () => {
  it('no second has more requests than the limit, whenever claims arrive', () => {
    const claim = fc.record({ waitMs: fc.integer({ min: 0, max: 400 }), wanted: fc.integer({ min: 0, max: 200 }) })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1000 }),
        fc.array(claim, { minLength: 1, maxLength: 60 }),
        (maxPerSecond, claims) => {
          let now = 1_000_000
          let freeAt: number | undefined
          const starts: number[] = []
          for (const { waitMs, wanted } of claims) {
            now += waitMs
            const reserved = reserveRequests({ maxPerSecond, freeAt }, wanted, now)
            freeAt = reserved.freeAt
            for (let count = 0; count < reserved.granted; count += 1) starts.push(now)
          }
          // Of `maxPerSecond + 1` consecutive requests, the last must start at least a second after the first.
          const tooEarly = starts.filter((start, index) => (starts[index + maxPerSecond] ?? Infinity) < start + 1000)
          expect(tooEarly).toEqual([])
        },
      ),
    )
  })

  it('a request is granted at the announced time and not before; at least 85 percent of the limit can be used', () => {
    for (const maxPerSecond of [1, 2, 9, 10, 11, 100, 1000]) {
      let freeAt: number | undefined
      let now = 1_000_000
      let granted = 0
      while (now < 1_010_000) {
        const reserved = reserveRequests({ maxPerSecond, freeAt }, 1000, now)
        expect(reserved.granted).toBeGreaterThan(0)
        expect(reserveRequests({ maxPerSecond, freeAt: reserved.freeAt }, 1, reserved.nextAt - 2).granted).toBe(0)
        granted += reserved.granted
        freeAt = reserved.freeAt
        now = reserved.nextAt
      }
      expect(granted / 10).toBeGreaterThanOrEqual(0.85 * maxPerSecond)
    }
  })
})

describe('a subscription with a rate limit', () => {
  itLong(
    'does not exceed its limit if two cores claim its deliveries, and does not delay other destinations',
    async () => {
      const [limited, other] = [await test.newScene(), await test.newScene()]
      const { subscriptionId, operator } = limited
      const { subscription } = await operator.updateSubscription({ subscriptionId, maxPerSecond: 20 })
      expect(subscription?.maxPerSecond).toBe(20)
      const workers = [await test.worker(test.cores[0], 'a'), await test.worker(test.cores[1], 'b')]
      const ids = new Set<string>()
      let repeated = 0
      const began = test.now()
      const claiming = workers.map(async ({ claim }) => {
        while (ids.size < 13) {
          for (const { deliveryId } of await claim({ waitMs: 500 })) {
            if (ids.has(deliveryId)) repeated += 1
            ids.add(deliveryId)
          }
        }
        return test.now()
      })
      await Promise.all(Array.from({ length: 12 }, () => limited.send()))
      const sent = await other.send()
      await Promise.all(claiming)
      const elapsed = test.now() - began
      // Two requests may start at once, and 19 follow in each second.
      expect(elapsed).toBeGreaterThanOrEqual((10 * 1000) / 19)
      expect(ids).toContain(sent.deliveryId)
      expect(repeated).toBe(0)
    },
  )

  it('has no limit after the limit is set to 0; rates outside of 1 to 1,000 are rejected', async () => {
    const { subscriptionId, operator, sendMany } = await test.newScene()
    await operator.updateSubscription({ subscriptionId, maxPerSecond: 1 })
    await expect(operator.updateSubscription({ subscriptionId, maxPerSecond: 1001 })).rejects.toThrow(
      'ValidationFailed',
    )
    await sendMany(10)
    const worker = await test.worker()
    expect(await worker.claim()).toHaveLength(1)
    const { subscription } = await operator.updateSubscription({ subscriptionId, maxPerSecond: 0 })
    expect(subscription?.maxPerSecond).toBeUndefined()
    test.advance(1000)
    expect(await worker.claim()).toHaveLength(9)
  })

  it('a new subscription keeps the limit that it was created with', async () => {
    const { operator } = await test.newScene()
    const { subscription } = await operator.createSubscription({
      destinationUrl: 'https://crm.example/leads',
      mappedFields: [],
      maxPerSecond: 5,
    })
    expect(subscription?.maxPerSecond).toBe(5)
  })
})
