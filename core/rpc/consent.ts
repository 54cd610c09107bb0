import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { type ConsentRecordSchema, ConsentDecision as Decision } from '#proto/session/v1/session_pb.js'
import type { ConsentDecision } from '../sessions/model.ts'

export function toConsentRecord({
  decision,
  decidedAt,
  policyVersion,
  policyUrl,
}: ConsentDecision): MessageInitShape<typeof ConsentRecordSchema> {
  return {
    decision: decision === 'granted' ? Decision.GRANTED : Decision.DENIED,
    policyVersion,
    policyUrl,
    decidedAt: timestampFromDate(decidedAt),
  }
}

export const decisions = {
  [Decision.GRANTED]: 'granted',
  [Decision.DENIED]: 'denied',
  [Decision.UNSPECIFIED]: undefined,
} as const
