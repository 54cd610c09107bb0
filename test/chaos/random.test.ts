import { expect, it } from 'vitest'
import { faultNames } from './faults.ts'
import { createRandom } from './random.ts'
import { type Step, schedule } from './schedule.ts'

it('the same seed gives the same numbers, and another seed gives different numbers', () => {
  const draw = (seed: number) => {
    const { next } = createRandom(seed)
    return Array.from({ length: 20 }, next)
  }
  expect(draw(7)).toEqual(draw(7))
  expect(draw(7)).not.toEqual(draw(8))
  expect(draw(7).every((number) => number >= 0 && number < 1)).toBe(true)
})

it('a schedule causes each fault alone first, then combinations; the same seed gives the same schedule', () => {
  const steps = (seed: number) => {
    const steps: Step[] = []
    for (const step of schedule(faultNames, createRandom(seed))) if (steps.push(step) === 60) break
    return steps
  }
  const alone = steps(3).slice(0, faultNames.length)
  expect(alone.every(({ faults }) => faults.length === 1)).toBe(true)
  expect(new Set(alone.map(({ faults }) => faults[0]?.name))).toEqual(new Set(faultNames))
  expect(
    new Set(
      steps(3)
        .slice(faultNames.length)
        .map(({ faults }) => faults.length),
    ),
  ).toEqual(new Set([1, 2, 3]))
  expect(steps(3)).toEqual(steps(3))
  expect(steps(3)).not.toEqual(steps(4))
})
