import { describe, expect, test } from 'vitest'
import { createSingleFlight } from './single-flight.ts'

describe('a single flight', () => {
  test('a single flight does all work that arrives during a round in the next round', async () => {
    let waiting = 0
    const rounds: number[] = []
    const flight = createSingleFlight(
      () => waiting > 0,
      async () => {
        rounds.push(waiting)
        waiting = 0
        await new Promise(setImmediate)
      },
    )
    waiting += 1
    const first = flight.run()
    await null
    await null
    waiting += 1
    void flight.run()
    waiting += 1
    await flight.run()
    await first
    expect(rounds).toEqual([1, 2])
  })

  test('a single flight rejects `run` when a round fails, and starts a new round at the next call of `run`', async () => {
    let left = 2
    const flight = createSingleFlight(
      () => left > 0,
      async () => {
        left -= 1
        if (left === 1) throw new Error('first round')
      },
    )
    await expect(flight.run()).rejects.toThrow('first round')
    await flight.run()
    expect(left).toBe(0)
  })

  test('a single flight starts the first round at once, and skips the pause of `paceMs` while a caller awaits `settled`', async () => {
    let waiting = 1
    const rounds: number[] = []
    const flight = createSingleFlight(
      () => waiting > 0,
      async () => {
        rounds.push(waiting)
        waiting = 0
      },
      { paceMs: 2 ** 30 },
    )
    await flight.run()
    expect(rounds).toEqual([1])

    waiting = 3
    void flight.run()
    await flight.settled()
    expect(rounds).toEqual([1, 3])

    waiting = 2
    void flight.run()
    waiting += 2
    await flight.settled()
    expect(rounds).toEqual([1, 3, 4])
  })

  test('a single flight skips the pause if the next round is full', async () => {
    let waiting = 5
    const flight = createSingleFlight(
      () => waiting > 0,
      async () => {
        waiting -= Math.min(waiting, 2)
      },
      { paceMs: 2 ** 30, isFull: () => waiting >= 2 },
    )
    void flight.run()
    await expect.poll(() => waiting).toBe(1)
    await flight.settled()
    expect(waiting).toBe(0)
  })

  test('a single flight resolves `caughtUp` when the work recorded before the call is done, even while new work arrives', async () => {
    let waiting = 1
    let done = 0
    let stopped = false
    const flight = createSingleFlight(
      () => !stopped && waiting > 0,
      async () => {
        done += waiting
        waiting = 1
        await new Promise(setImmediate)
      },
      { paceMs: 1 },
    )
    void flight.run()
    await new Promise(setImmediate)
    const recorded = done + waiting
    await flight.caughtUp()
    expect(done).toBeGreaterThanOrEqual(recorded)
    stopped = true
    await flight.settled()
    await flight.caughtUp()
  })
})
