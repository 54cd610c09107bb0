import { expect, it } from 'vitest'
import { verdictOf } from './audit.ts'

const counts = { info: 0, low: 0, moderate: 0, high: 0, critical: 0, total: 0 }

it.each([
  ['clean', { vulnerabilities: {}, metadata: { vulnerabilities: counts } }],
  [
    'weak',
    {
      vulnerabilities: { fastify: { severity: 'high', isDirect: true, range: '<5.1.0' } },
      metadata: { vulnerabilities: { ...counts, high: 1, total: 1 } },
    },
  ],
  ['unknown', { message: 'request failed', error: { summary: '', detail: '' } }],
])('an audit is %s only where the registry said so', (outcome, report) => {
  expect(verdictOf(JSON.stringify(report)).outcome).toBe(outcome)
})

it.each(['', 'npm error audit endpoint returned an error', '[]'])('no report is no clean report: %j', (text) => {
  expect(verdictOf(text)).toMatchObject({ outcome: 'unknown', says: expect.stringContaining('NOT AUDITED') })
})
