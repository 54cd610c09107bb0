import { describe, expect, it } from 'vitest'
import { createOpenDeliveries, type OpenDelivery } from './open-deliveries.ts'

const delivery = (destination: string, deliveryId = destination) =>
  ({ delivery: { destination, deliveryId }, leaseEndsAt: 0 }) as OpenDelivery

describe('the list of open deliveries', () => {
  it('the list of open deliveries keeps places free for other destinations if a few destinations have many deliveries', () => {
    const open = createOpenDeliveries({ concurrency: 50, perDestination: 10 })
    const begun = ['a', 'b', 'c', 'd', 'e'].map(
      (destination) => Array.from({ length: 10 }, () => open.add(delivery(destination))).filter(Boolean).length,
    )
    expect(begun.every((count) => count >= 2 && count <= 10)).toBe(true)
    expect(open.places()).toBeGreaterThanOrEqual(5)
    expect(open.add(delivery('healthy'))).toBe(true)
    expect(open.underWay()).toMatchObject({ a: 10, e: 10, healthy: 1 })
    expect(open.anyFull()).toBe(true)
  })

  it('the list of open deliveries returns waiting deliveries in round robin as places become free', () => {
    const open = createOpenDeliveries({ concurrency: 3, perDestination: 1 })
    for (const name of ['a', 'b', 'c']) expect(open.add(delivery(name))).toBe(true)
    for (const name of ['d', 'd', 'd', 'e']) expect(open.add(delivery(name))).toBe(false)
    expect(open.next()).toBeUndefined()
    expect(open.ready()).toBe(2)
    open.finish('a')
    expect(open.next()?.delivery.destination).toBe('d')
    open.finish('b')
    expect(open.next()?.delivery.destination).toBe('e')
    open.finish('c')
    expect(open.next()).toBeUndefined()
    expect(open.places()).toBe(1)
    open.finish('d')
    expect(open.next()?.delivery.destination).toBe('d')
  })

  it('the list of open deliveries asks for more when half of the deliveries claimed in advance are left', () => {
    const open = createOpenDeliveries({ concurrency: 50, perDestination: 2, aheadOf: (name) => (name === 'a' ? 4 : 0) })
    for (let count = 0; count < 6; count++) open.add(delivery('a'))
    open.add(delivery('b'))
    expect(open.full()).toEqual(new Set(['a']))
    const asked = Array.from({ length: 6 }, () => {
      const needsMore = open.finish('a')
      open.next()
      return needsMore
    })
    expect(asked).toEqual([false, true, true, true, true, false])
  })

  it('the list of open deliveries counts deliveries per destination until they finish or are dropped', () => {
    const open = createOpenDeliveries({ concurrency: 10, perDestination: 2 })
    for (let count = 0; count < 5; count++) open.add(delivery('a'))
    expect(open.underWay()).toEqual({ a: 5 })
    expect(open.ready()).toBe(0)
    expect(open.dropWaiting()).toHaveLength(3)
    expect(open.underWay()).toEqual({ a: 2 })
    expect(open.finish('a')).toBe(true)
    expect(open.finish('a')).toBe(false)
    expect(open.underWay()).toEqual({})
    expect(open.anyFull()).toBe(false)
    expect(open.places()).toBe(10)
  })
})
