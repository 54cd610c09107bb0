import { beforeAll, beforeEach, expect, it } from 'vitest'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { testDeliveries } from '../test/deliveries.ts'

const test = testDeliveries()
beforeAll(() => test.open({ count: 1 }))
beforeEach(() => test.clear())

async function gauge(name: 'oldestDueAge' | 'deliveriesHeld' | 'deliveriesDue' | 'deliveriesScheduled') {
  await test.cores[0]!.measureQueue()
  const [found] = (await test.cores[0]!.metrics[name].get()).values
  return found?.value
}

it('the age of the oldest due delivery leaves out destinations to which a worker is sending', async () => {
  const [hung, other] = [await test.newScene(), await test.newScene()]
  const stream = await test.stream({ limit: 1 })
  await Promise.all([hung.send(), hung.send(), hung.send()])
  test.advance(20_000)
  expect(await gauge('oldestDueAge')).toBe(0)
  expect(await gauge('deliveriesDue')).toBe(3)
  await other.send()
  test.advance(5_000)
  const age = await gauge('oldestDueAge')
  expect(age).toBeGreaterThanOrEqual(5)
  expect(age).toBeLessThan(20)
  stream.leave()
  await stream.ended
  test.advance(10_000)
  expect(await gauge('oldestDueAge')).toBeGreaterThanOrEqual(35)
})

it('the metric of held deliveries counts the deliveries of a disabled subscription', async () => {
  const { send, operator, subscriptionId } = await test.newScene()
  await Promise.all([send(), send()])
  expect(await gauge('deliveriesHeld')).toBe(0)
  await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
  expect(await gauge('deliveriesHeld')).toBe(2)
})

it('a delivery that waits for a retry counts as scheduled, and in the queue of its destination', async () => {
  const { send, subscriptionId } = await test.newScene()
  await send()
  expect([await gauge('deliveriesDue'), await gauge('deliveriesScheduled')]).toEqual([1, 0])
  await (await test.worker()).drain(503)
  expect([await gauge('deliveriesDue'), await gauge('deliveriesScheduled')]).toEqual([0, 1])
  const queues = await test.cores[0]!.metrics.longestQueues.get()
  expect(queues.values).toMatchObject([{ value: 1, labels: { subscription: subscriptionId } }])
})

it('the counters of attempts and disabled subscriptions begin at 0, so that the first event is an increase', async () => {
  const { metrics } = (await test.open({ count: 1 })).at(-1)!
  const text = await metrics.registry.metrics()
  for (const series of [
    'service_core_attempts_total{status="dead_lettered",response_class="timeout"} 0',
    'service_core_attempts_total{status="accepted",response_class="accepted"} 0',
    'service_core_subscriptions_disabled_total{reason="gone"} 0',
  ]) {
    expect(text).toContain(series)
  }
})
