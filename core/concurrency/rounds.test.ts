import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRounds } from './rounds.ts'

describe('a round', () => {
  it('covers all keys within its steps, in parts of equal size', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 1, max: 30 }), (count, steps) => {
        const all = Array.from({ length: count }, (_, index) => index)
        const next = createRounds(() => all, steps)
        const parts = Array.from({ length: steps }, next)
        expect(parts.flat().slice(0, count)).toEqual(all)
        for (const part of parts) expect(part.length).toBeLessThanOrEqual(Math.ceil(count / steps))
      }),
    )
  })

  it('includes keys that appeared in the next round, without removed ones', () => {
    const present = new Set(['a', 'b'])
    const next = createRounds(() => present, 2)
    expect(next()).toEqual(['a'])
    present.add('c')
    present.delete('a')
    expect([next(), next(), next()]).toEqual([['b'], ['b'], ['c']])
  })
})
