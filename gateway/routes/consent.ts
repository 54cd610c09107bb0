import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ConsentDecision } from '#proto/session/v1/session_pb.js'
import { idempotencyKeyOf } from '../checks/request-checks.ts'
import { timeOf } from '../core-calls/proto-values.ts'
import { callOptions, type RouteDeps, visitorOf } from '../route-deps.ts'
import { ConsentAnswer, ConsentBody } from '../schemas/consent.ts'
import { markReplayed } from './sessions.ts'

/** POST /sessions/consent */
export const consentRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core }) => {
  app.post(
    '/sessions/consent',
    {
      schema: {
        operationId: 'recordConsent',
        summary: 'Grant or deny the consent policy',
        description:
          'Takes the `policyVersion` of the configuration; any other version is `ValidationFailed`. While `consent.required` is true, messages and forms are `ConsentRequired` until the visitor has granted the present version. A later decision replaces an earlier one. Identification and renewal keep the decision.',
        tags: ['Session'],
        body: ConsentBody,
        response: { 200: ConsentAnswer },
      },
      config: { scoped: true, idempotent: true, rate: 'calls' },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const { policyVersion, decision } = request.body
      const { consent, replayed } = await core.sessions.recordConsent(
        {
          credentials,
          policyVersion,
          decision: decision === 'granted' ? ConsentDecision.GRANTED : ConsentDecision.DENIED,
          idempotencyKey: idempotencyKeyOf(request),
        },
        callOptions(request),
      )
      if (!consent) throw new Error('the answer of the core has no decision')
      markReplayed(reply, replayed)
      return {
        decision: consent.decision === ConsentDecision.GRANTED ? 'granted' : 'denied',
        policyVersion: consent.policyVersion,
        decidedAt: timeOf(consent.decidedAt),
      }
    },
  )
}
