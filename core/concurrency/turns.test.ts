import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createTurns } from './turns.ts'

test('pieces of work run in their order, and a limited number of them in each turn of the event loop', async () => {
  const turns = createTurns(3)
  const done: number[] = []
  const pieces = Array.from({ length: 8 }, async (_, index) => {
    await turns()
    done.push(index)
  })
  const counts: number[] = []
  while (done.length < 8) {
    await turn()
    counts.push(done.length)
  }
  await Promise.all(pieces)
  expect(done).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  const steps = counts.map((count, index) => count - (counts[index - 1] ?? 0))
  expect(Math.max(...steps.slice(1))).toBeLessThanOrEqual(3)
  expect(counts.length).toBeGreaterThan(1)
})
