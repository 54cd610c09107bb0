import { expect, it } from 'vitest'
import { createBus } from '../bus.ts'
import { bareCore } from '../test/core-with.ts'
import { liveCacheOf } from './live-cache.ts'
import { type Wakeups, wakeupsOf } from './wakeups.ts'

function newScene() {
  const scene = { time: 0, loads: 0, isCurrent: true, isInContact: true, loading: Promise.resolve() }
  const bus = createBus()
  const core = bareCore({ bus })
  const isCurrent = (isRoutine = false) => (isRoutine ? scene.isInContact : scene.isCurrent)
  wakeupsOf.set(core, { isCurrent } as Wakeups)
  const cache = liveCacheOf(core, {
    loadMany: async (keys) => {
      scene.loads += 1
      const load = scene.loads
      await scene.loading
      return new Map(keys.map((key) => [key, load]))
    },
    maxEntries: 2,
    maxAgeMs: 5_000,
    monotonic: () => scene.time,
  })
  return { scene, cache, bus }
}

it('a live cache reads the store again after the maximum age, even without a change', async () => {
  const { scene, cache } = newScene()
  expect(await cache.get('a')).toBe(1)
  scene.time = 5_000
  expect(await cache.get('a')).toBe(1)
  scene.time = 5_001
  expect(await cache.get('a')).toBe(2)
})

it('a live cache counts the age of an entry from the start of its load', async () => {
  const { scene, cache } = newScene()
  const answer = Promise.withResolvers<void>()
  scene.loading = answer.promise
  const asked = cache.get('a')
  scene.time = 4_000
  answer.resolve()
  expect(await asked).toBe(1)
  scene.time = 5_001
  expect(await cache.get('a')).toBe(2)
})

it('a live cache reads the store on each call while wake-ups may be missing', async () => {
  const { scene, cache } = newScene()
  await cache.get('a')
  scene.isCurrent = false
  expect(await cache.get('a')).toBe(2)
})

it('a live cache does not keep the result of a load that began before a change', async () => {
  const { scene, cache } = newScene()
  const answer = Promise.withResolvers<void>()
  scene.loading = answer.promise
  const asked = cache.get('a')
  await Promise.resolve()
  cache.invalidate('a')
  answer.resolve()
  expect(await asked).toBe(1)
  expect(await cache.get('a')).toBe(2)
})

it.each(['changed', 'gap'] as const)(
  'a live cache does not keep the result of a load during which `%s` arrived, whichever load ends first',
  async (kind) => {
    const { scene, cache, bus } = newScene()
    const answers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    scene.loading = answers[0]!.promise
    const before = cache.get('a')
    await Promise.resolve()
    if (kind === 'gap') bus.emit('gap')
    else bus.emit('changed', ['a'])
    scene.loading = answers[1]!.promise
    const after = cache.get('a')
    answers[1]!.resolve()
    expect(await after).toBe(2)
    answers[0]!.resolve()
    expect(await before).toBe(1)
    expect(await cache.get('a')).toBe(2)
  },
)

it('a live cache keeps the result of a load during which other objects change', async () => {
  const { scene, cache, bus } = newScene()
  const answer = Promise.withResolvers<void>()
  scene.loading = answer.promise
  const asked = cache.get('a')
  await Promise.resolve()
  bus.emit('changed', ['b', 'feed wsp_1'])
  cache.invalidate('c')
  answer.resolve()
  expect(await asked).toBe(1)
  expect(await cache.get('a')).toBe(1)
})

it('a routine check of a live cache needs no proof, and asks the store again without contact and after a gap', async () => {
  const { scene, cache, bus } = newScene()
  scene.isCurrent = false
  expect(await cache.get('a', true)).toBe(1)
  expect(await cache.get('a', true)).toBe(1)
  bus.emit('changed', ['a'])
  expect(await cache.get('a', true)).toBe(2)
  scene.isInContact = false
  expect(await cache.get('a', true)).toBe(3)
  scene.isInContact = true
  bus.emit('gap')
  expect(await cache.get('a', true)).toBe(4)
})
