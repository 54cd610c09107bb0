import { describe, expect, test } from 'vitest'
import { createSingleFlight } from './single-flight.ts'

describe('work done one run at a time', () => {
  test('what comes up during a round belongs to the same run, as one round', async () => {
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

  test('a round that fails ends the run for its callers, and the next run starts afresh', async () => {
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

  test('with a pace the first round starts at once, and whoever waits for the end does not wait for the pace', async () => {
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

  test('whoever waits for what is there now does not wait for what never stops coming', async () => {
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
