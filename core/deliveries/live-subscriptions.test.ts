import { expect, it } from 'vitest'
import { createBus } from '../bus.ts'
import { bareCore } from '../test/core-with.ts'
import { type Wakeups, wakeupsOf } from '../wakeups/wakeups.ts'
import { liveSubscriptionsOf } from './live-subscriptions.ts'

/**
 * Creates a store with one subscription. The store writes the number of reads so far into the URL
 * of the subscription.
 */
function newScene() {
  const scene = { reads: 0, now: 1_000, isCurrent: true, published: [] as string[] }
  const bus = createBus()
  const leadSubscriptions = {
    find({ _id }: { _id: { $in: string[] } }) {
      scene.reads += 1
      const found = _id.$in
        .filter((id) => id === 'sub_1')
        .map((id) => ({ _id: id, failingSince: new Date(scene.reads) }))
      return { toArray: async () => found }
    },
  }
  const core = bareCore({ db: { leadSubscriptions }, bus, now: () => scene.now })
  const stateChanged = async (...ids: string[]) => void scene.published.push(...ids)
  wakeupsOf.set(core, { isCurrent: () => scene.isCurrent, stateChanged } as Wakeups)
  const live = liveSubscriptionsOf(core)
  return { scene, live, bus, find: () => live.find('sub_1') }
}

it('the cache reads a subscription once, and returns it with the time of the read', async () => {
  const { scene, find } = newScene()
  const known = await find()
  scene.now += 4_000
  expect(await find()).toBe(known)
  expect(known?.readAt).toEqual(new Date(1_000))
  expect(scene.reads).toBe(1)
})

it('the cache reads a subscription again after a change or missed wake-ups, and notifies other cores of a change', async () => {
  const { scene, live, bus, find } = newScene()
  await find()
  bus.emit('changed', ['lead-deliveries'])
  await find()
  expect(scene.reads).toBe(1)
  bus.emit('changed', ['sub_1'])
  expect((await find())?.subscription.failingSince).toEqual(new Date(2))
  bus.emit('gap')
  expect((await find())?.subscription.failingSince).toEqual(new Date(3))
  await live.changed('sub_1')
  expect(scene.published).toEqual(['sub_1'])
})

it('the cache reads a subscription again while wake-ups may be missed, and after five seconds', async () => {
  const { scene, find } = newScene()
  await find()
  scene.isCurrent = false
  await find()
  expect(scene.reads).toBe(2)
  scene.isCurrent = true
  scene.now += 5_001
  await find()
  expect(scene.reads).toBe(3)
})

it('the cache returns undefined for an unknown subscription', async () => {
  expect(await newScene().live.find('sub_2')).toBeUndefined()
})
