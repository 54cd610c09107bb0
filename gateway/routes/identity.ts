import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import type { SessionContent } from '#proto/session/v1/session_pb.js'
import type { Visitor } from '../checks/grant.ts'
import { idempotencyKeyOf } from '../checks/idempotency.ts'
import { Answers, NoQuery } from '../schemas/fields.ts'
import { IdentifyBody, SessionAnswer } from '../schemas/sessions.ts'
import { callOptions, type RouteDeps, visitorOf } from './route-deps.ts'
import { markReplayed, toSessionAnswer } from './sessions.ts'

/** POST and DELETE /sessions/identify */
export const identityRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core }) => {
  const checks = { scoped: true, closedToo: true, idempotent: true, rate: 'calls' } as const

  app.post(
    '/sessions/identify',
    {
      schema: {
        operationId: 'identifyVisitor',
        summary: 'Say who the visitor is',
        description:
          'With an assertion that the host’s backend has signed. Go on with the session of the answer. An anonymous session, or one of another subject, is closed and its grant is dead; the same subject again keeps the session. A repeat with the same key gets the same answer, with the dead grant too. A failed assertion changes nothing.',
        tags: ['Identity'],
        body: IdentifyBody,
        querystring: NoQuery,
        response: Answers({ 200: SessionAnswer }),
      },
      config: {
        ...checks,
        described: {
          errors: ['IdentityAssertionInvalid', 'IdentityAssertionExpired', 'IdentityAssertionReplayed'],
        },
      },
    },
    async (request, reply) => {
      const visitor = visitorOf(request)
      const answer = await core.sessions.identifyVisitor(
        {
          credentials: visitor.credentials,
          assertion: request.body.assertion,
          idempotencyKey: idempotencyKeyOf(request),
        },
        callOptions(request),
      )
      return toAnswer(answer, visitor, reply)
    },
  )

  app.delete(
    '/sessions/identify',
    {
      schema: {
        operationId: 'clearIdentity',
        summary: 'Log the visitor out',
        description:
          'Without a body. The session is closed, and the answer is a new anonymous one with a new conversation. An anonymous session is given back as it is.',
        tags: ['Identity'],
        querystring: NoQuery,
        response: Answers({ 200: SessionAnswer }),
      },
      config: checks,
    },
    async (request, reply) => {
      const visitor = visitorOf(request)
      const answer = await core.sessions.clearIdentity(
        { credentials: visitor.credentials, idempotencyKey: idempotencyKeyOf(request) },
        callOptions(request),
      )
      return toAnswer(answer, visitor, reply)
    },
  )
}

function toAnswer(
  { session, replayed }: { session?: SessionContent; replayed: boolean },
  visitor: Visitor,
  reply: FastifyReply,
): SessionAnswer {
  // A new session replaced the old one, so the grant of the request is no longer valid.
  if (session?.sessionId !== visitor.sessionId) visitor.forget()
  markReplayed(reply, replayed)
  return toSessionAnswer(session)
}
