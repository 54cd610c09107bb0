import { expect, it } from 'vitest'
import { createChangeConfirmations } from './change-confirmations.ts'

const longMs = 60_000

/** Starts to wait for a change. `isApplied` returns whether the wait has ended. */
function newScene(processes: () => Promise<string[]>, leaseMs = longMs) {
  const confirmations = createChangeConfirmations({ processes, leaseMs })
  let ended = false
  const applied = (changes: number) => confirmations.applied(changes).then(() => (ended = true))
  const isApplied = async () => {
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
    return ended
  }
  return { ...confirmations, applied, isApplied }
}

it('`applied` resolves only when every core has confirmed the change or a later one', async () => {
  const scene = newScene(async () => ['a', 'b'])
  const applied = scene.applied(7)
  scene.confirmedBy('a', 8)
  scene.confirmedBy('b', 6)
  expect(await scene.isApplied()).toBe(false)
  scene.confirmedBy('stranger', 7)
  expect(await scene.isApplied()).toBe(false)
  scene.confirmedBy('b', 7)
  await applied
})

it('`applied` counts confirmations that arrive before the register was read', async () => {
  const register = Promise.withResolvers<string[]>()
  const scene = newScene(() => register.promise)
  const applied = scene.applied(7)
  scene.confirmedBy('a', 7)
  register.resolve(['a'])
  await applied
})

it('`applied` resolves at once if no core is registered', async () => {
  await newScene(async () => []).applied(7)
})

it('`applied` resolves after the lease if a core does not confirm, or if the register cannot be read', async () => {
  await newScene(async () => ['a'], 5).applied(7)
  await newScene(() => Promise.reject(new Error('down')), 5).applied(7)
  await newScene(() => new Promise(() => {}), 5).applied(7)
})

it('`stop` ends every wait', async () => {
  const scene = newScene(async () => ['a'])
  const applied = scene.applied(7)
  expect(await scene.isApplied()).toBe(false)
  scene.stop()
  await applied
})
