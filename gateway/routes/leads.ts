import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
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
import { refuseQuery } from '../schemas/fields.ts'
import {
  AttemptParams,
  CreateDeliveryAttemptBody,
  DeliveryAttemptAnswer,
  LeadParams,
  RetryDeliveryAttemptBody,
} from '../schemas/leads.ts'
import operations from './operations.json' with { type: 'json' }

export const LEADS_PREFIX = '/api/leads'

const DECIDED_BY_CORE: PublicErrorCode[] = ['SubscriptionDisabled', 'IdempotencyConflict']

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
        response: { 201: DeliveryAttemptAnswer, 200: DeliveryAttemptAnswer },
      },
      config: {
        operator: true,
        rate: 'leads',
        errors: [...DECIDED_BY_CORE, 'VisitorSuppressed', 'LeadNotFound', 'SubscriptionNotFound'],
      },
    },
    async (request, reply) => {
      const { leadId } = request.params
      const { attempt, existing } = await leads
        .createDeliveryAttempt({ leadId, ...request.body }, operatorOptions(request))
        .catch(asOperator)
      return reply.code(existing ? 200 : 201).send(toAnswer(attempt))
    },
  )

  app.post(
    '/retries/:attemptId',
    {
      schema: {
        ...operations.retryDeliveryAttempt,
        params: AttemptParams,
        body: RetryDeliveryAttemptBody,
        response: { 201: DeliveryAttemptAnswer, 200: DeliveryAttemptAnswer },
      },
      config: {
        operator: true,
        rate: 'leads',
        errors: [...DECIDED_BY_CORE, 'VisitorSuppressed', 'AttemptNotFound', 'AttemptNotRetryable'],
      },
    },
    async (request, reply) => {
      const { attemptId } = request.params
      const { attempt, existing } = await leads
        .retryDeliveryAttempt({ attemptId, ofLead: true, ...request.body }, operatorOptions(request))
        .catch(asOperator)
      return reply.code(existing ? 200 : 201).send(toAnswer(attempt))
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
