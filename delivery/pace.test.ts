import { describe, expect, it } from 'vitest'
import { createPace } from './pace.ts'

describe('createPace', () => {
  it('`perWindow` returns the larger count of the previous and the current window, and 0 if both are idle', () => {
    let time = 1_000
    const pace = createPace({ windowMs: 200, monotonic: () => time })
    expect(pace.perWindow()).toBe(0)
    for (let count = 0; count < 5; count++) pace.done('a')
    expect(pace.perWindow()).toBe(5)
    time += 200
    pace.done('a')
    expect(pace.perWindow()).toBe(5)
    time += 200
    expect(pace.perWindow()).toBe(1)
    time += 200
    expect(pace.perWindow()).toBe(0)
    for (let count = 0; count < 9; count++) pace.done('a')
    time += 10_000
    expect(pace.perWindow()).toBe(0)
  })

  it('`ofDestination` counts the attempts of one destination, and `destinations` lists the recent ones', () => {
    let time = 1_000
    const pace = createPace({ windowMs: 200, monotonic: () => time })
    for (const name of ['a', 'a', 'b']) pace.done(name)
    expect([pace.ofDestination('a'), pace.ofDestination('b'), pace.ofDestination('c')]).toEqual([2, 1, 0])
    time += 200
    pace.done('c')
    expect(pace.destinations()).toEqual(['a', 'b', 'c'])
    time += 200
    expect(pace.ofDestination('a')).toBe(0)
    expect(pace.destinations()).toEqual(['c'])
  })
})
