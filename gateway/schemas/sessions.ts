import { type Static, Type } from 'typebox'
import { EventId, Identifier, Locale, OneOf, OpaqueToken, PageContext, Sequence, Strict, Time } from './fields.ts'

export const CreateSessionBody = Strict({
  publicSiteKey: Identifier,
  clientInstanceId: Identifier,
  locale: Type.Optional(Locale),
  pageContext: Type.Optional(PageContext),
})

export const RenewSessionBody = Strict({
  sessionId: Identifier,
  renewalToken: OpaqueToken,
  lastSeenEventId: Type.Optional(EventId),
})

export const IdentifyBody = Strict({
  /** Compact JWS; what is in it the core verifies. */
  assertion: Type.String({ minLength: 1, maxLength: 8192 }),
})

export const CloseSessionBody = Strict({ scope: OneOf(['panel', 'continuity']) })

/** Session content (specification, section 2.2). */
export const SessionAnswer = Strict({
  sessionId: Type.String(),
  conversationId: Type.String(),
  accessGrant: Type.String(),
  expiresAt: Time,
  renewAfter: Time,
  renewalToken: Type.String(),
  replay: Strict({
    state: Type.String(),
    epoch: Type.String(),
    lastSequence: Sequence,
    oldestSequence: Sequence,
  }),
  continuity: Strict({ state: Type.String() }),
  identity: Strict({ state: Type.String(), displayName: Type.Optional(Type.String()) }),
})
export type SessionAnswer = Static<typeof SessionAnswer>

export const CloseSessionAnswer = Strict({ sessionId: Type.String(), state: Type.String() })
