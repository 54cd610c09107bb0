import { expect, test } from 'vitest'
import { createRateLimiter } from './rate-limiter.ts'

const start = Date.UTC(2030, 0, 1)

function limiterAt(now: number) {
  const clock = { now }
  const limiter = createRateLimiter({ perMinute: 60, burst: 2, keysMax: 10, now: () => clock.now })
  return { clock, take: () => limiter.take('visitor') }
}

test('a clock that is set back takes no tokens away', () => {
  const { clock, take } = limiterAt(start)
  expect(take()).toBe(0)
  clock.now = start - 3_600_000
  expect(take()).toBe(0)
  expect(take()).toBe(1)
  clock.now += 1_000
  expect(take()).toBe(0)
})

test('an emptied bucket regains its tokens with time, up to its burst', () => {
  const { clock, take } = limiterAt(start)
  expect([take(), take(), take()]).toEqual([0, 0, 1])
  clock.now += 999
  expect(take()).toBe(1)
  clock.now += 1
  expect(take()).toBe(0)
  clock.now += 3_600_000
  expect([take(), take(), take()]).toEqual([0, 0, 1])
})
