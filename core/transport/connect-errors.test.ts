import { Code } from '@connectrpc/connect'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { connectErrorOf } from './connect-errors.ts'

it('an unexpected error is logged with the places in the code, and with no line of its message', () => {
  const lines: string[] = []
  const logger = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) })
  connectErrorOf(new TypeError('private one\nprivate two'), '/service/Method', new Headers(), logger)
  expect(JSON.parse(lines[0]!).err).toEqual({
    type: 'TypeError',
    stack: expect.stringContaining('connect-errors.test.ts:'),
  })
  expect(lines.join()).not.toContain('private')
})

it.each([
  ...['ERR_STREAM_PREMATURE_CLOSE', 'ERR_HTTP2_INVALID_STREAM', 'ERR_STREAM_DESTROYED'].map((code) =>
    Object.assign(new Error(code), { code }),
  ),
  AbortSignal.abort().reason as Error,
])('a call whose caller left (%s) is no internal error', (gone) => {
  const lines: string[] = []
  const logger = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) })
  const error = connectErrorOf(gone, '/service/Method', new Headers(), logger)
  expect([error.code, lines]).toEqual([Code.Canceled, []])
})
