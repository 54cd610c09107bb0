import { type Static, Type } from 'typebox'
import {
  EventId,
  Identifier,
  Line,
  Locale,
  Named,
  OneOf,
  OpaqueToken,
  PageContext,
  Sequence,
  Strict,
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
  { examples: [{ publicSiteKey: 'pk_demo', clientInstanceId: 'browser-1', locale: 'en' }] },
)

export const RenewSessionBody = Strict(
  {
    sessionId: Identifier,
    renewalToken: OpaqueToken,
    lastSeenEventId: Type.Optional(EventId),
  },
  { examples: [{ sessionId: 'ses_3f9k2m', renewalToken: 'vJx0…', lastSeenEventId: '7f3a-42' }] },
)

export const CloseSessionBody = Strict(
  { scope: OneOf(['panel', 'continuity']) },
  { examples: [{ scope: 'continuity' }] },
)

export const IdentifyBody = Strict(
  {
    /** Assertion of the visitor's identity, as a compact JWS. The core verifies it. */
    assertion: Type.String({ minLength: 1, maxLength: 8192 }),
    renewalToken: Type.Optional(OpaqueToken),
  },
  { examples: [{ assertion: 'eyJhbGciOiJIUzI1NiIs…' }] },
)

export const ClearIdentityBody = Strict(
  { renewalToken: Type.Optional(OpaqueToken) },
  { examples: [{ renewalToken: 'vJx0…' }] },
)

const sessionContent = {
  sessionId: Type.String(),
  conversationId: Type.String(),
  accessGrant: Type.String(),
  expiresAt: Time,
  renewAfter: Time,
  renewableUntil: Time,
  renewalToken: Type.String(),
  replay: Strict({
    state: Named('ready', 'reset_required'),
    epoch: Type.String(),
    lastSequence: Sequence,
    oldestSequence: Sequence,
  }),
  continuity: Strict({ state: Named('new', 'continued', 'reset') }),
  identity: Strict({ state: Named('anonymous', 'verified'), displayName: Type.Optional(Type.String()) }),
}
const described = { description: 'The session and its credentials.', examples: [sessionExample] }

/** Answer that describes a session (specification, section 2.2, session content). */
export const SessionAnswer = Strict(sessionContent, described)
export type SessionAnswer = Static<typeof SessionAnswer>

/** The same after a change of the identity. */
export const IdentityAnswer = Strict({ ...sessionContent, renewalToken: Type.Optional(Type.String()) }, described)
export type IdentityAnswer = Static<typeof IdentityAnswer>

export const CloseSessionAnswer = Strict(
  { sessionId: Type.String(), state: Named('active', 'closed') },
  { description: 'The state of the session.', examples: [{ sessionId: 'ses_3f9k2m', state: 'closed' }] },
)

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
