import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAll } from '../../test/support/for-all.ts'
import { createRounds } from './job.ts'

describe('createRounds', () => {
  it('createRounds returns each key once in `steps` calls, and divides the keys evenly over these calls', () => {
    forAll([fc.integer({ min: 0, max: 200 }), fc.integer({ min: 1, max: 30 })], {}, (count, steps) => {
      const all = Array.from({ length: count }, (_, index) => index)
      const next = createRounds(() => all, steps)
      const parts = Array.from({ length: steps }, next)
      expect(parts.flat().slice(0, count)).toEqual(all)
      for (const part of parts) expect(part.length).toBeLessThanOrEqual(Math.ceil(count / steps))
    })
  })

  it('createRounds returns a key in the next round if it was added during a round, and omits removed keys', () => {
    const present = new Set(['a', 'b'])
    const next = createRounds(() => present, 2)
    expect(next()).toEqual(['a'])
    present.add('c')
    present.delete('a')
    expect([next(), next(), next()]).toEqual([['b'], ['b'], ['c']])
  })
  it('createRounds returns at least `minPart` keys together, and then none until the next round', () => {
    const next = createRounds(() => ['a', 'b', 'c'], 4, 2)
    expect(Array.from({ length: 5 }, next)).toEqual([['a', 'b'], ['c'], [], [], ['a', 'b']])
  })
})
