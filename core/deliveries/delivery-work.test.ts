import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createDeliveryWork, type PollResult } from './delivery-work.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/**
 * Starts workers that wait for items of one shared list. `polls` counts the polls of each worker.
 */
function waitingWorkers(count: number, more: Partial<PollResult<string>> = {}) {
  const work = createDeliveryWork<string, number>(() => Date.now())
  const heap: string[] = []
  const polls = Array.from({ length: count }, () => 0)
  const leaving = polls.map(() => new AbortController())
  const results = polls.map((_, index) =>
    work.wait({
      until: Date.now() + 20_000,
      signal: leaving[index]!.signal,
      room: index,
      poll: async () => {
        polls[index]! += 1
        const found = heap.pop()
        return { ...(found === undefined ? {} : { found }), othersMayFind: found !== undefined, ...more }
      },
    }),
  )
  const settled = () => vi.advanceTimersByTimeAsync(0)
  return { work, heap, polls, leaving, results, settled }
}

describe('waiting workers', () => {
  it('waiting workers are woken one after another as long as they find work, without a timer', async () => {
    const { work, heap, polls, results, settled } = waitingWorkers(5)
    await settled()
    expect(polls).toEqual([1, 1, 1, 1, 1])
    heap.push('a', 'b')
    work.announce()
    await settled()
    expect(polls).toEqual([2, 2, 2, 1, 1])
    expect(await Promise.all(results.slice(0, 2))).toEqual(['b', 'a'])
  })

  it('waiting workers are all woken if one of them finds no work although other workers may find some', async () => {
    const { work, polls, settled } = waitingWorkers(3, { othersMayFind: true })
    await settled()
    work.announce()
    await settled()
    expect(polls).toEqual([2, 2, 2])
  })

  it('waiting workers do not miss an announcement that arrives during a poll', async () => {
    const { work, heap, polls, results, settled } = waitingWorkers(1)
    heap.push('a')
    work.announce()
    await settled()
    expect(await results[0]).toBe('a')
    expect(polls).toEqual([2])
  })

  it('waiting workers pass an announcement on to the next worker when the woken worker aborts', async () => {
    const { work, heap, leaving, results, settled } = waitingWorkers(2)
    await settled()
    heap.push('a')
    work.announce()
    leaving[0]!.abort()
    await settled()
    const found = await Promise.race(results)
    expect(found === 'a' || (await results[1]) === 'a').toBe(true)
  })

  it('waiting workers poll every second without an announcement, and also when the next delivery is due', async () => {
    const { polls } = waitingWorkers(1)
    await vi.advanceTimersByTimeAsync(3500)
    expect(polls).toEqual([4])
    const soon = waitingWorkers(1, { nextDueAt: Date.now() + 300 })
    await vi.advanceTimersByTimeAsync(299)
    expect(soon.polls).toEqual([1])
    await vi.advanceTimersByTimeAsync(1)
    expect(soon.polls).toEqual([2])
  })

  it('waiting workers return nothing when their wait time has passed, when their caller aborts and when the core stops', async () => {
    const late = waitingWorkers(1)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(await late.results[0]).toBeUndefined()
    const left = waitingWorkers(1)
    await left.settled()
    left.leaving[0]!.abort()
    expect(await left.results[0]).toBeUndefined()
    const stopped = waitingWorkers(3)
    await stopped.settled()
    stopped.work.close()
    expect(await Promise.all(stopped.results)).toEqual([undefined, undefined, undefined])
    expect(await Promise.all(waitingWorkers(0).results)).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
  })
})
