import { Type } from 'typebox'
import type { RateConversationRequest, RateConversationResponse } from '#proto/messaging/v1/messaging_pb.js'
import { contractLimits } from '../../contract/limits.ts'
import { Line, type SchemasOf, Score, Sequence, Strict, Time } from './fields.ts'

export const RatingBody = Strict(
  {
    score: Score,
    comment: Type.Optional(Line(1, contractLimits.ratingCommentMaxLength)),
  } satisfies SchemasOf<RateConversationRequest, 'credentials' | 'idempotencyKey'>,
  { examples: [{ score: 5, comment: 'Quick and friendly' }] },
)

export const RatingAnswer = Strict(
  { score: Score, sequence: Sequence, ratedAt: Time } satisfies SchemasOf<RateConversationResponse, 'replayed'>,
  {
    description: 'The rating is stored durably. `sequence` is that of the event `rating.given`.',
    examples: [{ score: 5, sequence: 44, ratedAt: '2026-01-02T03:04:05.678Z' }],
  },
)
