import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { CloseScope, type SessionContent } from '#proto/session/v1/session_pb.js'
import { idempotencyKeyOf } from '../checks/request-checks.ts'
import type { GrantCache } from '../core-calls/grant-cache.ts'
import { timeOf, toAdvisory, toPageContext } from '../core-calls/proto-values.ts'
import { callOptions, type RouteDeps, visitorOf } from '../route-deps.ts'
import { PageContext } from '../schemas/fields.ts'
import {
  CloseSessionAnswer,
  CloseSessionBody,
  CreateSessionBody,
  RenewSessionBody,
  SessionAnswer,
} from '../schemas/sessions.ts'

/** POST /sessions, /sessions/renew, /sessions/close, /context/page */
export const sessionRoutes: FastifyPluginAsyncTypebox<RouteDeps> = async (app, { core, grants, refusals }) => {
  app.post(
    '/sessions',
    {
      schema: {
        operationId: 'createSession',
        summary: 'Start a visitor session',
        description:
          'The answer carries credentials: keep them in memory or in the tab, and never in a URL. A repeat gets the same session for 10 minutes.',
        tags: ['Bootstrap'],
        body: CreateSessionBody,
        response: { 201: SessionAnswer },
      },
      config: {
        idempotent: true,
        rate: 'sessions',
        described: { errors: ['InstallationNotFound', 'ConnectionDisabled', 'VisitorBanned'] },
      },
    },
    async (request, reply) => {
      const { body } = request
      const origin = request.headers.origin!
      const answer = await refusals.check(request, 'site', `${body.publicSiteKey} ${origin}`, () =>
        core.sessions.createSession(
          {
            ...body,
            ...toAdvisory(body),
            origin,
            clientAddress: request.ip,
            idempotencyKey: idempotencyKeyOf(request),
          },
          callOptions(request),
        ),
      )
      // Set here, because only routes with `scoped` get this header by default. The answer contains
      // credentials.
      reply.header('cache-control', 'no-store')
      return reply.code(201).send(answerSession(answer, { grants, request, reply }))
    },
  )

  app.post(
    '/sessions/renew',
    {
      schema: {
        operationId: 'renewSession',
        summary: 'Renew the access grant',
        description:
          'From `renewAfter` on. Until `renewableUntil` the expired grant is accepted too. The renewal token changes with each renewal. Open streams go on.',
        tags: ['Session'],
        body: RenewSessionBody,
        response: { 200: SessionAnswer },
      },
      config: { scoped: true, expiredToo: true, idempotent: true, rate: 'calls' },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const answer = await core.sessions.renewSession(
        { ...request.body, credentials, clientAddress: request.ip, idempotencyKey: idempotencyKeyOf(request) },
        callOptions(request),
      )
      return answerSession(answer, { grants, request, reply })
    },
  )

  app.post(
    '/sessions/close',
    {
      schema: {
        operationId: 'closeSession',
        summary: 'Close the panel, or end the session',
        description:
          '`panel` is kept with the session and shown to operators. `continuity` ends the session: its streams get `session.closed`, and the next identification of the same subject begins a new conversation. A repeat gets the same answer, even though the grant has ended.',
        tags: ['Session'],
        body: CloseSessionBody,
        response: { 200: CloseSessionAnswer },
      },
      config: { scoped: true, closedToo: true, idempotent: true, rate: 'calls' },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const scope = request.body.scope === 'panel' ? CloseScope.PANEL : CloseScope.CONTINUITY
      const { sessionId, state, replayed } = await core.sessions.closeSession(
        { credentials, scope, idempotencyKey: idempotencyKeyOf(request) },
        callOptions(request),
      )
      if (state === 'closed') grants.forget(credentials)
      markReplayed(reply, replayed)
      return { sessionId, state }
    },
  )

  app.post(
    '/context/page',
    {
      schema: {
        operationId: 'reportPageContext',
        summary: 'Report the page of the visitor',
        description:
          'Needs the capability `pageContext`. Operators see the latest one. No value is rejected: invalid ones are dropped. With an `Idempotency-Key` it counts once, so that a late repeat does not overwrite a newer page.',
        tags: ['Session'],
        body: PageContext,
        response: { 204: Type.Null({ description: 'The page context is stored.' }) },
      },
      config: {
        scoped: true,
        idempotent: 'optional',
        rate: 'calls',
        described: { errors: ['RouteNotAdvertised', 'ConsentRequired'] },
      },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const key = request.headers['idempotency-key']
      const { replayed } = await core.sessions.reportPageContext(
        {
          credentials,
          pageContext: toPageContext(request.body),
          idempotencyKey: typeof key === 'string' ? key : undefined,
        },
        callOptions(request),
      )
      markReplayed(reply, replayed)
      return reply.code(204).send(null)
    },
  )
}

/** Marks an answer that repeats the answer of an earlier request with the same key. */
export function markReplayed(reply: FastifyReply, replayed: boolean): void {
  if (replayed) reply.header('idempotency-replayed', 'true')
}

/** Converts session content to the public contract. Caches the authorization of the session's grant. */
export function answerSession(
  { session, replayed }: { session?: SessionContent; replayed: boolean },
  { grants, request, reply }: { grants: GrantCache; request: FastifyRequest; reply: FastifyReply },
): SessionAnswer {
  if (session?.replay === undefined) throw new Error('the answer of the core has no session')
  grants.remember(request.headers.origin!, session)
  markReplayed(reply, replayed)
  return {
    ...session,
    expiresAt: timeOf(session.expiresAt),
    renewAfter: timeOf(session.renewAfter),
    renewableUntil: timeOf(session.renewableUntil),
    replay: session.replay,
    continuity: { state: session.continuityState },
    identity: { state: session.identityState, displayName: session.displayName },
  }
}
