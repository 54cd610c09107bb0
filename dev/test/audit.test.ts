import { expect, it } from 'vitest'
import { classifyReport } from '../audit.ts'

const counts = { info: 0, low: 0, moderate: 0, high: 0, critical: 0, total: 0 }

it.each([
  ['clean', { vulnerabilities: {}, metadata: { vulnerabilities: counts } }],
  [
    'vulnerable',
    {
      vulnerabilities: { fastify: { severity: 'high', isDirect: true, range: '<5.1.0' } },
      metadata: { vulnerabilities: { ...counts, high: 1, total: 1 } },
    },
  ],
  ['unknown', { message: 'request failed', error: { summary: '', detail: '' } }],
])('classifyReport returns “%s” for the registry response %j', (outcome, report) => {
  expect(classifyReport(JSON.stringify(report)).outcome).toBe(outcome)
})

it.each(['', 'npm error audit endpoint returned an error', '[]'])(
  'classifyReport returns unknown for an unreadable report: %j',
  (text) => {
    expect(classifyReport(text)).toMatchObject({ outcome: 'unknown', summary: expect.stringContaining('NOT AUDITED') })
  },
)
