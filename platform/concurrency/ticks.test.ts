import { expect, it, onTestFinished, vi } from 'vitest'
import { atTick, everyTicks } from './ticks.ts'

function useTicks() {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const runs: string[] = []
  return { runs, run: (name: string) => () => void runs.push(name) }
}

it('timers whose times are near each other end with one wake-up, and the next ones at their own ticks', async () => {
  const { runs, run } = useTicks()
  for (const ms of [1, 200, 300, 374, 376, 700]) atTick(ms, run(`${ms}`))
  expect(vi.getTimerCount()).toBe(3)
  await vi.advanceTimersByTimeAsync(249)
  expect(runs).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(runs).toEqual(['1', '200', '300', '374'])
  await vi.advanceTimersByTimeAsync(500)
  expect(runs.slice(4)).toEqual(['376', '700'])
  expect(vi.getTimerCount()).toBe(0)
})

it('a cancelled timer never ends, even if one of the same tick cancels it', async () => {
  const { runs, run } = useTicks()
  let cancelLast = () => {}
  const cancelFirst = atTick(250, run('first'))
  atTick(250, () => cancelLast())
  cancelLast = atTick(250, run('last'))
  cancelFirst()
  atTick(2_000, run('alone'))()
  expect(vi.getTimerCount()).toBe(1)
  await vi.advanceTimersByTimeAsync(3_000)
  expect(runs).toEqual([])
})

it('periodic work runs until it is cancelled, and timers that are set during a tick wait for a later one', async () => {
  const { runs, run } = useTicks()
  const cancel = everyTicks(1_000, run('second'))
  const cancelOwn = everyTicks(500, () => {
    run('half')()
    if (runs.length > 4) cancelOwn()
  })
  await vi.advanceTimersByTimeAsync(2_000)
  expect(runs.toSorted()).toEqual(['half', 'half', 'half', 'half', 'second', 'second'])
  cancel()
  await vi.advanceTimersByTimeAsync(5_000)
  expect(runs).toHaveLength(6)
})
