import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { type DeliveryAttempt, DeliveryStatus, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { operatorAuthorization } from '../checks/operator-session.ts'
import { refuseUrlCredentials, requireContentType } from '../checks/request-checks.ts'
import { coreOf } from '../core-calls/core-clients.ts'
import { timeOf, withTimes } from '../core-calls/proto-values.ts'
import { asOperator } from '../errors.ts'
import { answerUnknownRoutes } from '../http/unknown-routes.ts'
import { type Check, inOrder } from '../in-order.ts'
import { checkRate } from '../limits/rate-limits.ts'
import about from '../schemas/about.json' with { type: 'json' }
import { Identifier, Named, OperationId, refuseQuery, Strict, Text, Time } from '../schemas/fields.ts'
import operations from './operations.json' with { type: 'json' }

const namesOf = (values: object) =>
  Object.keys(values)
    .filter((name) => !/^\d+$/.test(name) && name !== 'UNSPECIFIED')
    .map((name) => name.toLowerCase())

const CreateDeliveryAttemptBody = Strict(
  { subscriptionId: Identifier, idempotencyKey: OperationId },
  about.CreateDeliveryAttemptBody,
)

const RetryDeliveryAttemptBody = Strict({ idempotencyKey: OperationId }, about.RetryDeliveryAttemptBody)

const LeadParams = Strict({ leadId: Type.String({ examples: ['lead_5b1d0e'] }) })
const AttemptParams = Strict({ attemptId: Type.String({ examples: ['att_9e8d7c'] }) })

const orNull = (schema: object) => Type.Unsafe<string | null>({ ...schema, type: ['string', 'null'] })

const DeliveryAttemptAnswer = Strict(
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

export const LEADS_PREFIX = '/api/leads'

const DECIDED_BY_CORE: PublicErrorCode[] = ['SubscriptionDisabled', 'IdempotencyConflict', 'VisitorSuppressed']
const config = { operator: true, rate: 'leads' } as const
const response = { 201: DeliveryAttemptAnswer, 200: DeliveryAttemptAnswer }

/**
 * The routes of lead delivery (specification, section 4.2), for backends with a workspace session. They
 * send no CORS headers.
 */
export const leadRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { leads } = coreOf(app.gateway)
  answerUnknownRoutes(app)
  app.addHook('onRoute', refuseQuery)
  const forbidStorage: Check = (_request, reply) => void reply.header('cache-control', 'no-store')
  const requireOperator: Check = (request) => void operatorAuthorization(request)
  app.addHook('onRequest', inOrder([forbidStorage, refuseUrlCredentials, requireOperator, requireContentType]))
  app.addHook('preHandler', inOrder([checkRate]))

  app.post(
    '/:leadId/delivery-attempts',
    {
      schema: {
        ...operations.createDeliveryAttempt,
        params: LeadParams,
        body: CreateDeliveryAttemptBody,
        response,
      },
      config: { ...config, errors: [...DECIDED_BY_CORE, 'LeadNotFound', 'SubscriptionNotFound'] },
    },
    async (request, reply) => {
      const creation = { ...request.params, ...request.body }
      const created = await leads.createDeliveryAttempt(creation, operatorOptions(request)).catch(asOperator)
      return reply.code(created.existing ? 200 : 201).send(toAnswer(created.attempt))
    },
  )

  app.post(
    '/retries/:attemptId',
    {
      schema: {
        ...operations.retryDeliveryAttempt,
        params: AttemptParams,
        body: RetryDeliveryAttemptBody,
        response,
      },
      config: { ...config, errors: [...DECIDED_BY_CORE, 'AttemptNotFound', 'AttemptNotRetryable'] },
    },
    async (request, reply) => {
      const retry = { ...request.params, ofLead: true, ...request.body }
      const retried = await leads.retryDeliveryAttempt(retry, operatorOptions(request)).catch(asOperator)
      return reply.code(retried.existing ? 200 : 201).send(toAnswer(retried.attempt))
    },
  )
}

const operatorOptions = (request: FastifyRequest) => ({
  headers: { 'x-correlation-id': request.id, authorization: operatorAuthorization(request) },
})

function toAnswer(attempt: DeliveryAttempt | undefined) {
  if (attempt === undefined) throw new Error('the answer of the core has no attempt')
  const { status, responseClass, responseStatus, nextRetryAt } = attempt
  return {
    ...withTimes(attempt),
    status: DeliveryStatus[status]!.toLowerCase(),
    responseClass: responseClass === ResponseClass.UNSPECIFIED ? null : ResponseClass[responseClass]!.toLowerCase(),
    responseStatus: responseStatus ?? null,
    nextRetryAt: nextRetryAt === undefined ? null : timeOf(nextRetryAt),
  }
}
