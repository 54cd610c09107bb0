import { expect, it } from 'vitest'
import { encodeHeartbeat, encodeOpening } from './event-stream-encoding.ts'

it('encodeOpening writes the retry time in whole milliseconds and a comment', () => {
  expect(encodeOpening(1999.6)).toBe('retry: 2000\n\n: open\n\n')
})

it('encodeHeartbeat writes a comment with the position', () => {
  expect(encodeHeartbeat(42)).toBe(': hb 42\n\n')
})
