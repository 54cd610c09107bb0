import { Type } from 'typebox'
import { DeliveryStatus, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import about from './about.json' with { type: 'json' }
import { Identifier, Named, OperationId, Strict, Text, Time } from './fields.ts'

const namesOf = (values: object) =>
  Object.keys(values)
    .filter((name) => !/^\d+$/.test(name) && name !== 'UNSPECIFIED')
    .map((name) => name.toLowerCase())

export const CreateDeliveryAttemptBody = Strict(
  { subscriptionId: Identifier, idempotencyKey: OperationId },
  about.CreateDeliveryAttemptBody,
)

export const RetryDeliveryAttemptBody = Strict({ idempotencyKey: OperationId }, about.RetryDeliveryAttemptBody)

export const LeadParams = Strict({ leadId: Type.String({ examples: ['lead_5b1d0e'] }) })
export const AttemptParams = Strict({ attemptId: Type.String({ examples: ['att_9e8d7c'] }) })

const orNull = (schema: object) => Type.Unsafe<string | null>({ ...schema, type: ['string', 'null'] })

export const DeliveryAttemptAnswer = Strict(
  {
    attemptId: Text,
    deliveryId: Type.String({ description: 'The same for all attempts; the destination deduplicates by it.' }),
    leadId: Text,
    subscriptionId: Text,
    attemptNumber: Type.Integer({ minimum: 1 }),
    status: Named(...namesOf(DeliveryStatus)),
    responseClass: orNull({
      enum: [...namesOf(ResponseClass), null],
      description: 'Outcome of the attempt; null while it is pending.',
    }),
    responseStatus: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      description: 'HTTP status of the destination, if it answered.',
    }),
    nextRetryAt: orNull({ format: 'date-time', description: 'When the next attempt is due, if there is one.' }),
    correlationId: Text,
    createdAt: Time,
    updatedAt: Time,
  },
  about.DeliveryAttemptAnswer,
)
