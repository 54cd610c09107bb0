import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { CloseScope, ConsentDecision, type SessionContent } from '#proto/session/v1/session_pb.js'
import { operationOf, visitorOf } from '../checks/grant.ts'
import { idempotencyKeyOf } from '../checks/request-checks.ts'
import { callOptions, coreOf } from '../core-calls/core-clients.ts'
import { grantsOf } from '../core-calls/grant-cache.ts'
import { timeOf, toAdvisory, toPageContext } from '../core-calls/proto-values.ts'
import { limitRefusals } from '../limits/refusals.ts'
import { PageContext } from '../schemas/fields.ts'
import {
  ClearIdentityBody,
  CloseSessionAnswer,
  CloseSessionBody,
  ConsentAnswer,
  ConsentBody,
  CreateSessionBody,
  IdentifyBody,
  IdentityAnswer,
  RenewSessionBody,
  SessionAnswer,
} from '../schemas/sessions.ts'

/** Config of a route that acts for a visitor, once for each `Idempotency-Key`. */
export const operation = { scoped: true, idempotent: true, rate: 'calls' } as const

/** POST /sessions, /sessions/renew, /sessions/close, /sessions/consent, /context/page, POST and DELETE /sessions/identify */
export const sessionRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { sessions } = coreOf(app.gateway)
  const grants = grantsOf(app.gateway)

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
        errors: ['InstallationNotFound', 'ConnectionDisabled', 'VisitorBanned'],
      },
    },
    async (request, reply) => {
      const { body } = request
      const origin = request.headers.origin!
      const answer = await limitRefusals(request, 'site', `${body.publicSiteKey} ${origin}`, () =>
        sessions.createSession(
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
      return reply.code(201).send(answerSession(answer, reply))
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
      config: { ...operation, expiredToo: true },
    },
    async (request, reply) => {
      const renewal = { ...request.body, ...operationOf(request), clientAddress: request.ip }
      const answer = await sessions.renewSession(renewal, callOptions(request))
      return answerSession(answer, reply)
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
      config: { ...operation, closedToo: true },
    },
    async (request, reply) => {
      const operation = operationOf(request)
      const scope = request.body.scope === 'panel' ? CloseScope.PANEL : CloseScope.CONTINUITY
      const { sessionId, state, replayed } = await sessions.closeSession({ ...operation, scope }, callOptions(request))
      if (state === 'closed') grants.forget(operation.credentials)
      markReplayed(reply, replayed)
      return { sessionId, state }
    },
  )

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
      config: operation,
    },
    async (request, reply) => {
      const { policyVersion, decision } = request.body
      const { consent, replayed } = await sessions.recordConsent(
        {
          ...operationOf(request),
          policyVersion,
          decision: decision === 'granted' ? ConsentDecision.GRANTED : ConsentDecision.DENIED,
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

  const identityChecks = { ...operation, closedToo: true } as const

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
        ...identityChecks,
        advertisedBy: 'identity',
        errors: ['IdentityAssertionInvalid', 'IdentityAssertionExpired', 'IdentityAssertionReplayed'],
      },
    },
    async (request, reply) => {
      const identification = { ...request.body, ...operationOf(request), clientAddress: request.ip }
      return answerIdentity(await sessions.identifyVisitor(identification, callOptions(request)), reply)
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
      config: { ...identityChecks, bodyOptional: true },
    },
    async (request, reply) => {
      const clearing = { ...request.body, ...operationOf(request), clientAddress: request.ip }
      return answerIdentity(await sessions.clearIdentity(clearing, callOptions(request)), reply)
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
        advertisedBy: 'pageContext',
        idempotent: 'optional',
        rate: 'calls',
        errors: ['ConsentRequired'],
      },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const key = request.headers['idempotency-key']
      const { replayed } = await sessions.reportPageContext(
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
function answerSession(
  { session, replayed }: { session?: SessionContent; replayed: boolean },
  reply: FastifyReply,
): SessionAnswer {
  if (session?.replay === undefined) throw new Error('the answer of the core has no session')
  grantsOf(reply.server.gateway).remember(reply.request.headers.origin!, session)
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

function answerIdentity(answer: { session?: SessionContent; replayed: boolean }, reply: FastifyReply): IdentityAnswer {
  const { credentials, sessionId } = visitorOf(reply.request)
  // A new session replaced the old one, so the grant of the request is no longer valid.
  if (answer.session?.sessionId !== sessionId) grantsOf(reply.server.gateway).forget(credentials)
  const { renewalToken, ...rest } = answerSession(answer, reply)
  return renewalToken === '' ? rest : { renewalToken, ...rest }
}
