import { type Static, Type } from 'typebox'
import type {
  AcceptedMessage,
  Author,
  ListVisitorMessagesResponse,
  Message,
  RateConversationRequest,
  RateConversationResponse,
  StopAnswerResponse,
  VisitorMessage,
} from '#proto/messaging/v1/messaging_pb.js'
import { contractLimits } from '../../contract/limits.ts'
import about from './about.json' with { type: 'json' }
import {
  Line,
  Locale,
  MessageBody,
  Named,
  OneOf,
  OperationId,
  OptionalText,
  PageContext,
  type SchemasOf,
  Score,
  Sequence,
  Strict,
  Text,
  Time,
} from './fields.ts'

export const SendMessageBody = Strict(
  {
    clientOperationId: OperationId,
    body: MessageBody,
    contentType: OneOf(['text']),
    locale: Type.Optional(Locale),
    pageContext: Type.Optional(PageContext),
  } satisfies SchemasOf<VisitorMessage, 'credentials' | 'retryRoute' | 'correlationId'>,
  about.SendMessageBody,
)
export type SendMessageBody = Static<typeof SendMessageBody>

export const SendMessageAnswer = Strict(
  {
    clientOperationId: Text,
    messageId: Text,
    sessionId: Text,
    conversationId: Text,
    sequence: Sequence,
    state: Named('queued'),
    acceptedAt: Time,
  } satisfies SchemasOf<AcceptedMessage, 'replayed'>,
  about.SendMessageAnswer,
)
export type SendMessageAnswer = Static<typeof SendMessageAnswer>

export const RetryParams = Strict({ clientOperationId: OperationId })

export const HistoryQuery = Strict(
  {
    afterSequence: Type.Optional(Sequence),
    beforeSequence: Type.Optional(Sequence),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: contractLimits.historyPageMax })),
  },
  { not: { required: ['afterSequence', 'beforeSequence'] } },
)

export const AuthorAnswer = Strict({
  kind: Named('visitor', 'agent', 'bot', 'system'),
  displayName: OptionalText,
  avatarUrl: OptionalText,
} satisfies SchemasOf<Author>)

export const MessageAnswer = Strict({
  messageId: Text,
  clientOperationId: OptionalText,
  sessionId: OptionalText,
  conversationId: Text,
  sequence: Sequence,
  author: AuthorAnswer,
  body: Text,
  contentType: Named('text'),
  locale: OptionalText,
  state: Named('queued', 'sent', 'delivered', 'read', 'failed'),
  createdAt: Time,
  redactedAt: Type.Optional(Time),
  quickReplies: Type.Optional(
    Type.Array(Text, { description: 'Answers of a bot’s message that the visitor can send with a tap.' }),
  ),
  growing: Type.Optional(
    Type.Boolean({ description: 'Whether a bot still writes the message. `body` is the text so far.' }),
  ),
  ended: Type.Optional({
    ...Named('stopped', 'interrupted'),
    description: 'How a message that grew has ended before its bot completed it.',
  }),
} satisfies SchemasOf<Message, 'correlationId'>)
export type MessageAnswer = Static<typeof MessageAnswer>

export const HistoryAnswer = Strict(
  {
    messages: Type.Array(MessageAnswer),
    hasMore: Type.Boolean(),
    lastSequence: Sequence,
    oldestSequence: Sequence,
    rating: Type.Optional({
      ...Named('requested', 'given'),
      description: 'Whether the visitor may rate the closed conversation, or has rated it.',
    }),
  } satisfies SchemasOf<ListVisitorMessagesResponse>,
  about.HistoryAnswer,
)

export const StopParams = Strict({ messageId: Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$' }) })

export const StopAnswer = Strict(
  {
    messageId: Text,
    state: { ...Named('stopped', 'completed', 'interrupted'), description: 'How the answer ended.' },
    sequence: Sequence,
  } satisfies SchemasOf<StopAnswerResponse, 'replayed'>,
  about.StopAnswer,
)
export type StopAnswer = Static<typeof StopAnswer>

export const EventsQuery = Strict({ afterSequence: Type.Optional(Sequence) })

export const ReceiptBody = Strict({ upToSequence: Sequence, state: OneOf(['delivered', 'read']) }, about.ReceiptBody)

export const TypingBody = Strict({ state: OneOf(['started', 'stopped']) }, about.TypingBody)

export const PresenceBody = Strict(
  { tab: Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$' }), state: OneOf(['here', 'away']) },
  about.PresenceBody,
)

export const RatingBody = Strict(
  {
    score: Score,
    comment: Type.Optional(Line(1, contractLimits.ratingCommentMaxLength)),
  } satisfies SchemasOf<RateConversationRequest, 'credentials' | 'idempotencyKey'>,
  about.RatingBody,
)

export const RatingAnswer = Strict(
  { score: Score, sequence: Sequence, ratedAt: Time } satisfies SchemasOf<RateConversationResponse, 'replayed'>,
  about.RatingAnswer,
)
