import { expect, it } from 'vitest'
import { createBus } from '../bus.ts'
import type { LeadSubscription } from './lead-subscription-store.ts'
import { createLiveSubscriptions } from './live-subscriptions.ts'

/** A store with one subscription, whose URL counts its reads. */
function newScene() {
  const scene = { reads: 0, now: 1_000, isCurrent: true, published: [] as string[] }
  const bus = createBus()
  const live = createLiveSubscriptions({
    bus,
    store: {
      find: async (ids) => {
        scene.reads += 1
        return ids
          .filter((id) => id === 'sub_1')
          .map((subscriptionId) => ({ subscriptionId, destinationUrl: String(scene.reads) }) as LeadSubscription)
      },
    },
    wakeups: { isCurrent: () => scene.isCurrent, stateChanged: async (...ids) => void scene.published.push(...ids) },
    now: () => scene.now,
  })
  return { scene, live, bus, find: () => live.find('sub_1') }
}

it('caches a subscription with the time of its read', async () => {
  const { scene, find } = newScene()
  const known = await find()
  scene.now += 9_000
  expect(await find()).toBe(known)
  expect(known?.readAt).toEqual(new Date(1_000))
  expect(scene.reads).toBe(1)
})

it('reads again after a change or a gap, and publishes changes to every core', async () => {
  const { scene, live, bus, find } = newScene()
  await find()
  bus.emit('changed', ['lead-deliveries'])
  await find()
  expect(scene.reads).toBe(1)
  bus.emit('changed', ['sub_1'])
  expect((await find())?.subscription.destinationUrl).toBe('2')
  bus.emit('gap')
  expect((await find())?.subscription.destinationUrl).toBe('3')
  await live.changed('sub_1')
  expect(scene.published).toEqual(['sub_1'])
})

it('reads each time while hints may be missed, and after ten seconds', async () => {
  const { scene, find } = newScene()
  await find()
  scene.isCurrent = false
  await find()
  expect(scene.reads).toBe(2)
  scene.isCurrent = true
  scene.now += 10_001
  await find()
  expect(scene.reads).toBe(3)
})

it('returns undefined for an unknown subscription', async () => {
  expect(await newScene().live.find('sub_2')).toBeUndefined()
})
