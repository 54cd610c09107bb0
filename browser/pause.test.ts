import { expect, it, vi } from 'vitest'
import { createManualClock } from '../test/support/manual-clock.ts'
import { createPause } from './pause.ts'

it('hurry() ends a wait early, but not before the minimum time of the wait', async () => {
  const clock = createManualClock()
  const pause = createPause(clock)
  const done = vi.fn()
  void pause.wait(10_000, 4_000).then(done)
  pause.hurry()
  clock.advance(3_999)
  await Promise.resolve()
  expect(done).not.toHaveBeenCalled()
  clock.advance(1)
  await Promise.resolve()
  expect(done).toHaveBeenCalledOnce()
  expect(pause.isWaiting()).toBe(false)
})

it('end() ends a wait at once, even before the minimum time of the wait', async () => {
  const clock = createManualClock()
  const pause = createPause(clock)
  const waiting = pause.wait(10_000, 10_000)
  pause.end()
  await waiting
  expect(clock.nextIn()).toBeUndefined()
})
