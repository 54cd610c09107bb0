import { expect, it } from 'vitest'
import { stackFrames } from './stack-frames.ts'

it.each(['', 'private', 'private\nprivate', 'private\n    at private (/etc/passwd:1:1)'])(
  'the frames of an error with the message %j name code only',
  (message) => {
    const frames = stackFrames(new TypeError(message))
    expect(frames[0]).toContain('stack-frames.test.ts:')
    expect(frames.join()).not.toContain('private')
    expect(frames.join()).not.toContain('/etc/passwd')
  },
)

it('an error without a stack has no frames', () => {
  const error = new Error('private')
  error.stack = undefined as never
  expect(stackFrames(error)).toEqual([])
})
