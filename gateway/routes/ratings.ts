import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { idempotencyKeyOf } from '../checks/request-checks.ts'
import { timeOf } from '../core-calls/proto-values.ts'
import { callOptions, type RouteDeps, visitorOf } from '../route-deps.ts'
import { RatingAnswer, RatingBody } from '../schemas/ratings.ts'
import { markReplayed } from './sessions.ts'

/** POST /ratings */
export const ratingRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core }) => {
  app.post(
    '/ratings',
    {
      schema: {
        operationId: 'rateConversation',
        summary: 'Rate the closed conversation',
        description:
          'Needs the capability `rating`. Accepted once after each closing that asked for a rating, until the conversation is reopened. A repeat with the same key gets the first answer again.',
        tags: ['Messages'],
        body: RatingBody,
        response: { 201: RatingAnswer },
      },
      config: {
        scoped: true,
        advertisedBy: 'rating',
        idempotent: true,
        rate: 'calls',
        described: { errors: ['ConsentRequired', 'RatingNotRequested', 'RatingAlreadyGiven'] },
      },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const idempotencyKey = idempotencyKeyOf(request)
      const { ratedAt, replayed, score, sequence } = await core.messaging.rateConversation(
        { credentials, idempotencyKey, ...request.body },
        callOptions(request),
      )
      markReplayed(reply, replayed)
      return reply.code(201).send({ score, sequence, ratedAt: timeOf(ratedAt) })
    },
  )
}
