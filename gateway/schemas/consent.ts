import { Type } from 'typebox'
import { Line, Named, OneOf, Strict, Time } from './fields.ts'

export const ConsentBody = Strict(
  {
    policyVersion: Line(1, 64),
    decision: OneOf(['granted', 'denied']),
  },
  { examples: [{ policyVersion: '2026-01', decision: 'granted' }] },
)

export const ConsentAnswer = Strict(
  { decision: Named('granted', 'denied'), policyVersion: Type.String(), decidedAt: Time },
  {
    description: 'The stored decision.',
    examples: [{ decision: 'granted', policyVersion: '2026-01', decidedAt: '2026-01-02T03:04:05.678Z' }],
  },
)
