import { type Static, Type } from 'typebox'
import {
  EventId,
  Identifier,
  Locale,
  Named,
  OneOf,
  OpaqueToken,
  PageContext,
  Sequence,
  Strict,
  Time,
} from './fields.ts'

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
    state: Named('ready', 'reset_required'),
    epoch: Type.String(),
    lastSequence: Sequence,
    oldestSequence: Sequence,
  }),
  continuity: Strict({ state: Named('new', 'continued', 'reset') }),
  identity: Strict({ state: Named('anonymous', 'verified'), displayName: Type.Optional(Type.String()) }),
})
export type SessionAnswer = Static<typeof SessionAnswer>

export const CloseSessionAnswer = Strict({ sessionId: Type.String(), state: Named('active', 'closed') })
