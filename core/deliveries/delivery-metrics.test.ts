import { expect, it } from 'vitest'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { testDeliveries } from '../test/deliveries.ts'
import { pendingFaultsOf } from './faults.ts'
import { measureDestinations, measureQueue } from './jobs.ts'

const test = testDeliveries({ count: 1 })

async function gauge(name: 'oldestDueAge' | 'deliveriesHeld' | 'deliveriesDue' | 'deliveriesScheduled') {
  await measureQueue(test.cores[0]!)
  const [found] = (await test.cores[0]!.metrics[name].get()).values
  return found?.value
}

it('a disabled destination and a failing one are measured while they are in this state', async () => {
  const core = test.cores[0]!
  const state = async () => {
    await measureDestinations(core)
    const disabled = await core.metrics.disabledSubscriptions.get()
    const [longest] = (await core.metrics.failingDestination.get()).values
    return [disabled.values.find(({ labels }) => labels.reason === 'rejected_auth')?.value, longest?.value]
  }
  expect(await state()).toEqual([0, 0])
  const [refusing, failing] = [await test.newScene(), await test.newScene()]
  await refusing.send()
  await (await test.worker()).drain(401)
  await failing.send()
  await (await test.worker()).drain(503)
  await pendingFaultsOf(core).run()
  test.advance(7_200_000)
  const [disabled, failingSeconds] = await state()
  expect(disabled).toBe(1)
  expect(failingSeconds).toBeGreaterThanOrEqual(7_200)
  const setStatus = ({ operator, subscriptionId }: typeof failing, status: SubscriptionStatus) =>
    operator.updateSubscription({ subscriptionId, status })
  await setStatus(refusing, SubscriptionStatus.ENABLED)
  await setStatus(failing, SubscriptionStatus.DISABLED)
  expect(await state()).toEqual([0, 0])
})

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

it('the counters of attempts begin at 0, so that the first event is an increase', async () => {
  const { metrics } = (await test.open()).at(-1)!
  const text = await metrics.registry.metrics()
  for (const series of [
    'service_core_attempts_total{status="dead_lettered",response_class="timeout"} 0',
    'service_core_attempts_total{status="accepted",response_class="accepted"} 0',
  ]) {
    expect(text).toContain(series)
  }
})
