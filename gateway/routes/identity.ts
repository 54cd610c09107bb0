import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SessionContent } from '#proto/session/v1/session_pb.js'
import { idempotencyKeyOf } from '../checks/request-checks.ts'
import { callOptions, type RouteDeps, visitorOf } from '../route-deps.ts'
import { ClearIdentityBody, IdentifyBody, IdentityAnswer } from '../schemas/sessions.ts'
import { answerSession } from './sessions.ts'

/** POST and DELETE /sessions/identify */
export const identityRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core, grants }) => {
  const checks = { scoped: true, closedToo: true, idempotent: true, rate: 'calls' } as const

  app.post(
    '/sessions/identify',
    {
      schema: {
        operationId: 'identifyVisitor',
        summary: 'Identify the visitor',
        description:
          'Needs the capability `identity`. Takes an assertion that the host’s backend has signed. Continue with the session of the answer. An anonymous session, or one of another subject, is closed and its grant ends; the same subject keeps its session. The answer has a renewal token only for a new session, or if the request names the one of the session. A repeat with the same key gets the same answer, even though the grant has ended. A failed assertion changes nothing.',
        tags: ['Identity'],
        body: IdentifyBody,
        response: { 200: IdentityAnswer },
      },
      config: {
        ...checks,
        described: {
          errors: [
            'RouteNotAdvertised',
            'IdentityAssertionInvalid',
            'IdentityAssertionExpired',
            'IdentityAssertionReplayed',
          ],
        },
      },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const answer = await core.sessions.identifyVisitor(
        {
          credentials,
          ...request.body,
          clientAddress: request.ip,
          idempotencyKey: idempotencyKeyOf(request),
        },
        callOptions(request),
      )
      return toAnswer(answer, request, reply)
    },
  )

  app.delete(
    '/sessions/identify',
    {
      schema: {
        operationId: 'clearIdentity',
        summary: 'Log the visitor out',
        description:
          'The body may be left out. Closes the session and answers with a new anonymous one with a new conversation. An anonymous session is returned unchanged, with a renewal token only if the request names the one of the session.',
        tags: ['Identity'],
        body: ClearIdentityBody,
        response: { 200: IdentityAnswer },
      },
      config: { ...checks, bodyOptional: true },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const answer = await core.sessions.clearIdentity(
        { ...request.body, credentials, clientAddress: request.ip, idempotencyKey: idempotencyKeyOf(request) },
        callOptions(request),
      )
      return toAnswer(answer, request, reply)
    },
  )

  function toAnswer(
    answer: { session?: SessionContent; replayed: boolean },
    request: FastifyRequest,
    reply: FastifyReply,
  ): IdentityAnswer {
    const { credentials, sessionId } = visitorOf(request)
    // A new session replaced the old one, so the grant of the request is no longer valid.
    if (answer.session?.sessionId !== sessionId) grants.forget(credentials)
    const { renewalToken, ...rest } = answerSession(answer, { grants, request, reply })
    return renewalToken === '' ? rest : { renewalToken, ...rest }
  }
}
