import { type Static, Type } from 'typebox'
import { Locale, MessageBody, OneOf, OperationId, PageContext, Sequence, Strict, Time } from './fields.ts'

export const SendMessageBody = Strict({
  clientOperationId: OperationId,
  body: MessageBody,
  contentType: OneOf(['text']),
  locale: Type.Optional(Locale),
  pageContext: Type.Optional(PageContext),
})

export const RetryParams = Strict({ clientOperationId: OperationId })

export const SendMessageAnswer = Strict({
  clientOperationId: Type.String(),
  messageId: Type.String(),
  sessionId: Type.String(),
  conversationId: Type.String(),
  sequence: Sequence,
  state: Type.String(),
  acceptedAt: Time,
})
export type SendMessageAnswer = Static<typeof SendMessageAnswer>

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
    kind: Type.String(),
    displayName: Type.Optional(Type.String()),
    avatarUrl: Type.Optional(Type.String()),
  }),
  body: Type.String(),
  contentType: Type.String(),
  locale: Type.Optional(Type.String()),
  state: Type.String(),
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
