import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SessionContent } from '#proto/session/v1/session_pb.js'
import { idempotencyKeyOf } from '../checks/request-checks.ts'
import { callOptions, type RouteDeps, visitorOf } from '../route-deps.ts'
import { IdentifyBody, SessionAnswer } from '../schemas/sessions.ts'
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
          'Needs the capability `identity`. Takes an assertion that the host’s backend has signed. Continue with the session of the answer. An anonymous session, or one of another subject, is closed and its grant ends; the same subject keeps its session. A repeat with the same key gets the same answer, even though the grant has ended. A failed assertion changes nothing.',
        tags: ['Identity'],
        body: IdentifyBody,
        response: { 200: SessionAnswer },
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
          assertion: request.body.assertion,
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
          'Takes no body. Closes the session and answers with a new anonymous one with a new conversation. An anonymous session is returned unchanged.',
        tags: ['Identity'],
        response: { 200: SessionAnswer },
      },
      config: checks,
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const answer = await core.sessions.clearIdentity(
        { credentials, clientAddress: request.ip, idempotencyKey: idempotencyKeyOf(request) },
        callOptions(request),
      )
      return toAnswer(answer, request, reply)
    },
  )

  function toAnswer(
    answer: { session?: SessionContent; replayed: boolean },
    request: FastifyRequest,
    reply: FastifyReply,
  ): SessionAnswer {
    const { credentials, sessionId } = visitorOf(request)
    // A new session replaced the old one, so the grant of the request is no longer valid.
    if (answer.session?.sessionId !== sessionId) grants.forget(credentials)
    return answerSession(answer, { grants, request, reply })
  }
}
