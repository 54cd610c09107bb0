import { type Static, Type } from 'typebox'
import { contractLimits } from '../../contract/limits.ts'
import about from './about.json' with { type: 'json' }
import {
  EventId,
  Identifier,
  Line,
  Locale,
  Named,
  OneOf,
  OpaqueToken,
  OptionalText,
  PageContext,
  Sequence,
  Strict,
  Text,
  Time,
} from './fields.ts'

const sessionExample = {
  sessionId: 'ses_3f9k2m',
  conversationId: 'cnv_8d1p4x',
  accessGrant: 'eyJhbGciOiJIUzI1NiIs…',
  expiresAt: '2026-01-02T03:19:05.678Z',
  renewAfter: '2026-01-02T03:14:05.678Z',
  renewableUntil: '2026-01-02T05:19:05.678Z',
  renewalToken: 'vJx0…',
  replay: { state: 'ready', epoch: '7f3a', lastSequence: 0, oldestSequence: 0 },
  continuity: { state: 'new' },
  identity: { state: 'anonymous' },
}

export const CreateSessionBody = Strict(
  {
    publicSiteKey: Identifier,
    clientInstanceId: Identifier,
    locale: Type.Optional(Locale),
    pageContext: Type.Optional(PageContext),
  },
  about.CreateSessionBody,
)

export const RenewSessionBody = Strict(
  {
    sessionId: Identifier,
    renewalToken: OpaqueToken,
    lastSeenEventId: Type.Optional(EventId),
  },
  about.RenewSessionBody,
)

export const CloseSessionBody = Strict({ scope: OneOf(['panel', 'continuity']) }, about.CloseSessionBody)

export const IdentifyBody = Strict(
  {
    assertion: Type.String({ minLength: 1, maxLength: contractLimits.assertionMaxLength }),
    renewalToken: Type.Optional(OpaqueToken),
  },
  about.IdentifyBody,
)

export const ClearIdentityBody = Strict({ renewalToken: Type.Optional(OpaqueToken) }, about.ClearIdentityBody)

const sessionContent = {
  sessionId: Text,
  conversationId: Text,
  accessGrant: Text,
  expiresAt: Time,
  renewAfter: Time,
  renewableUntil: Time,
  renewalToken: Text,
  replay: Strict({
    state: Named('ready', 'reset_required'),
    epoch: Text,
    lastSequence: Sequence,
    oldestSequence: Sequence,
  }),
  continuity: Strict({ state: Named('new', 'continued', 'reset') }),
  identity: Strict({ state: Named('anonymous', 'verified'), displayName: OptionalText }),
}
const described = { description: 'The session and its credentials.', examples: [sessionExample] }

export const SessionAnswer = Strict(sessionContent, described)
export type SessionAnswer = Static<typeof SessionAnswer>

export const IdentityAnswer = Strict({ ...sessionContent, renewalToken: OptionalText }, described)
export type IdentityAnswer = Static<typeof IdentityAnswer>

export const CloseSessionAnswer = Strict(
  { sessionId: Text, state: Named('active', 'closed') },
  about.CloseSessionAnswer,
)

export const ConsentBody = Strict(
  {
    policyVersion: Line(1, contractLimits.policyVersionMaxLength),
    decision: OneOf(['granted', 'denied']),
  },
  about.ConsentBody,
)

export const ConsentAnswer = Strict(
  { decision: Named('granted', 'denied'), policyVersion: Text, decidedAt: Time },
  about.ConsentAnswer,
)
