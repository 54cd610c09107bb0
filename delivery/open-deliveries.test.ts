import { describe, expect, it } from 'vitest'
import { createOpenDeliveries, type OpenDeliveries, type OpenDelivery } from './open-deliveries.ts'

const delivery = (destination: string, deliveryId = destination) =>
  ({ delivery: { destination, deliveryId } }) as unknown as OpenDelivery

/** Starts all deliveries that may be sent now. Returns their destinations. */
function start(open: OpenDeliveries): string[] {
  const started: string[] = []
  for (let next = open.next(); next; next = open.next()) started.push(next.delivery.destination)
  return started
}

describe('the list of open deliveries', () => {
  it('the list of open deliveries keeps places free for other destinations if a few destinations have many deliveries', () => {
    const open = createOpenDeliveries({ concurrency: 50, perDestination: 10 })
    for (const name of ['a', 'b', 'c', 'd', 'e']) for (let count = 0; count < 10; count++) open.add(delivery(name))
    const started = start(open)
    expect(started.length).toBeLessThanOrEqual(45)
    for (const name of ['a', 'b', 'c', 'd', 'e'])
      expect(started.filter((each) => each === name).length).toBeGreaterThan(1)
    open.add(delivery('healthy'))
    expect(start(open)).toEqual(['healthy'])
  })

  it('the list of open deliveries returns waiting deliveries in round robin as places become free', () => {
    const open = createOpenDeliveries({ concurrency: 3, perDestination: 1 })
    for (const name of ['a', 'b', 'c', 'd', 'd', 'd', 'e']) open.add(delivery(name))
    expect(start(open)).toEqual(['a', 'b', 'c'])
    open.finish('a')
    expect(start(open)).toEqual(['d'])
    open.finish('b')
    expect(start(open)).toEqual(['e'])
    open.finish('c')
    expect(start(open)).toEqual([])
    open.finish('d')
    expect(start(open)).toEqual(['d'])
  })

  it('the list of open deliveries drops the deliveries that wait, and none that are being sent', () => {
    const open = createOpenDeliveries({ concurrency: 10, perDestination: 2 })
    for (let count = 0; count < 5; count++) open.add(delivery('a'))
    expect(start(open)).toHaveLength(2)
    expect(open.dropWaiting()).toHaveLength(3)
    open.finish('a')
    expect(start(open)).toEqual([])
  })
})
