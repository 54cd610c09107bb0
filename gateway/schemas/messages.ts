import { type Static, Type } from 'typebox'
import { Locale, MessageBody, Named, OneOf, OperationId, PageContext, Sequence, Strict, Time } from './fields.ts'

export const SendMessageBody = Strict({
  clientOperationId: OperationId,
  body: MessageBody,
  contentType: OneOf(['text']),
  locale: Type.Optional(Locale),
  pageContext: Type.Optional(PageContext),
})

export const SendMessageAnswer = Strict({
  clientOperationId: Type.String(),
  messageId: Type.String(),
  sessionId: Type.String(),
  conversationId: Type.String(),
  sequence: Sequence,
  state: Named('queued'),
  acceptedAt: Time,
})

export const HistoryQuery = Strict(
  {
    afterSequence: Type.Optional(Sequence),
    beforeSequence: Type.Optional(Sequence),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  },
  { not: { required: ['afterSequence', 'beforeSequence'] } },
)

export const MessageAnswer = Strict({
  messageId: Type.String(),
  clientOperationId: Type.Optional(Type.String()),
  sessionId: Type.Optional(Type.String()),
  conversationId: Type.String(),
  sequence: Sequence,
  author: Strict({
    kind: Named('visitor', 'agent', 'system'),
    displayName: Type.Optional(Type.String()),
    avatarUrl: Type.Optional(Type.String()),
  }),
  body: Type.String(),
  contentType: Named('text'),
  locale: Type.Optional(Type.String()),
  state: Named('queued', 'sent', 'delivered', 'read', 'failed'),
  createdAt: Time,
})
export type MessageAnswer = Static<typeof MessageAnswer>

export const HistoryAnswer = Strict({
  messages: Type.Array(MessageAnswer),
  hasMore: Type.Boolean(),
  lastSequence: Sequence,
  oldestSequence: Sequence,
})

export const EventsQuery = Strict({ afterSequence: Type.Optional(Sequence) })
