import { expect, it } from 'vitest'
import { createChangeConfirmations } from './change-confirmations.ts'

/** Starts to wait for a change. `isApplied` returns whether the wait has ended. */
function newScene({ leaseMs = 60_000, cores = [] as string[] } = {}) {
  const clock = { time: 0 }
  const confirmations = createChangeConfirmations('own', leaseMs, () => clock.time)
  for (const id of cores) confirmations.beatOf(id)
  let ended = false
  const applied = (changes: number) => confirmations.applied(changes).then(() => (ended = true))
  const isApplied = async () => {
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
    return ended
  }
  return { ...confirmations, clock, applied, isApplied }
}

it('`applied` resolves only when this process and every core with a beat have confirmed the change or a later one', async () => {
  const scene = newScene({ cores: ['a', 'b'] })
  const applied = scene.applied(7)
  scene.arrived(7)
  scene.confirmedBy('a', 8)
  scene.confirmedBy('b', 6)
  scene.confirmedBy('own', 7)
  scene.confirmedBy('stranger', 7)
  expect(await scene.isApplied()).toBe(false)
  scene.confirmedBy('b', 7)
  await applied
})

it('`applied` also waits for a core whose first beat arrived just before the change', async () => {
  const scene = newScene()
  const applied = scene.applied(7)
  scene.confirmedBy('own', 7)
  expect(await scene.isApplied()).toBe(false)
  scene.beatOf('new')
  scene.arrived(7)
  expect(await scene.isApplied()).toBe(false)
  scene.confirmedBy('new', 7)
  await applied
})

it('`applied` does not wait for a core whose first beat arrived after the change', async () => {
  const scene = newScene()
  const applied = scene.applied(7)
  scene.arrived(7)
  scene.beatOf('new')
  scene.confirmedBy('own', 7)
  await applied
})

it('`applied` counts a change and confirmations that arrived before the call', async () => {
  const scene = newScene({ cores: ['a'] })
  scene.arrived(7)
  scene.confirmedBy('own', 7)
  scene.confirmedBy('a', 7)
  await scene.applied(7)
})

it('`applied` does not wait for a resting core: one without a beat for the lease', async () => {
  const scene = newScene({ leaseMs: 30_000, cores: ['a'] })
  scene.clock.time = 29_999
  scene.beatOf('b')
  scene.clock.time = 30_000
  expect(scene.others()).toBe(2)
  const applied = scene.applied(7)
  scene.arrived(7)
  scene.confirmedBy('own', 7)
  expect(await scene.isApplied()).toBe(false)
  scene.confirmedBy('b', 7)
  await applied
  scene.clock.time = 46_000
  expect(scene.others()).toBe(1)
})

it('`applied` resolves after the lease if a core does not confirm, or if the change does not arrive', async () => {
  const scene = newScene({ leaseMs: 5, cores: ['a'] })
  scene.arrived(7)
  await scene.applied(7)
  await scene.applied(8)
})

it('`stop` ends every wait', async () => {
  const scene = newScene()
  const applied = scene.applied(7)
  expect(await scene.isApplied()).toBe(false)
  scene.stop()
  await applied
})
