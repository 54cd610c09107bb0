import type { CallOptions } from '@connectrpc/connect'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import { type Static, Type } from 'typebox'
import { CloseScope, ConsentDecision, type SessionContent } from '#proto/session/v1/session_pb.js'
import { contractLimits } from '../../contract/limits.ts'
import { operationOf, visitorOf } from '../checks/grant.ts'
import { idempotencyKeyOf } from '../checks/request-checks.ts'
import { callOptions, coreOf } from '../core-calls/core-clients.ts'
import { grantsOf } from '../core-calls/grant-cache.ts'
import { toAdvisory, toPageContext, withTimes } from '../core-calls/proto-values.ts'
import { limitRefusals } from '../limits/refusals.ts'
import about from '../schemas/about.json' with { type: 'json' }
import {
  EventId,
  Identifier,
  Line,
  Locale,
  Named,
  OneOf,
  OpaqueToken,
  OptionalText,
  PageContext,
  Sequence,
  Strict,
  Text,
  Time,
} from '../schemas/fields.ts'
import operations from './operations.json' with { type: 'json' }

const sessionExample = {
  sessionId: 'ses_3f9k2m',
  conversationId: 'cnv_8d1p4x',
  accessGrant: 'eyJhbGciOiJIUzI1NiIs…',
  expiresAt: '2026-01-02T03:19:05.678Z',
  renewAfter: '2026-01-02T03:14:05.678Z',
  renewableUntil: '2026-01-02T05:19:05.678Z',
  renewalToken: 'vJx0…',
  replay: { state: 'ready', epoch: '7f3a', lastSequence: 0, oldestSequence: 0 },
  continuity: { state: 'new' },
  identity: { state: 'anonymous' },
}

const CreateSessionBody = Strict(
  {
    publicSiteKey: Identifier,
    clientInstanceId: Identifier,
    locale: Type.Optional(Locale),
    pageContext: Type.Optional(PageContext),
  },
  about.CreateSessionBody,
)

const RenewSessionBody = Strict(
  {
    sessionId: Identifier,
    renewalToken: OpaqueToken,
    lastSeenEventId: Type.Optional(EventId),
  },
  about.RenewSessionBody,
)

const CloseSessionBody = Strict({ scope: OneOf(['panel', 'continuity']) }, about.CloseSessionBody)

const IdentifyBody = Strict(
  {
    assertion: Type.String({ minLength: 1, maxLength: contractLimits.assertionMaxLength }),
    renewalToken: Type.Optional(OpaqueToken),
  },
  about.IdentifyBody,
)

const ClearIdentityBody = Strict({ renewalToken: Type.Optional(OpaqueToken) }, about.ClearIdentityBody)

const sessionContent = {
  sessionId: Text,
  conversationId: Text,
  accessGrant: Text,
  expiresAt: Time,
  renewAfter: Time,
  renewableUntil: Time,
  renewalToken: Text,
  replay: Strict({
    state: Named('ready', 'reset_required'),
    epoch: Text,
    lastSequence: Sequence,
    oldestSequence: Sequence,
  }),
  continuity: Strict({ state: Named('new', 'continued', 'reset') }),
  identity: Strict({ state: Named('anonymous', 'verified'), displayName: OptionalText }),
}
const described = { description: 'The session and its credentials.', examples: [sessionExample] }

export const SessionAnswer = Strict(sessionContent, described)
type SessionAnswer = Static<typeof SessionAnswer>

const IdentityAnswer = Strict({ ...sessionContent, renewalToken: OptionalText }, described)
type IdentityAnswer = Static<typeof IdentityAnswer>

const CloseSessionAnswer = Strict({ sessionId: Text, state: Named('active', 'closed') }, about.CloseSessionAnswer)

const ConsentBody = Strict(
  {
    policyVersion: Line(1, contractLimits.policyVersionMaxLength),
    decision: OneOf(['granted', 'denied']),
  },
  about.ConsentBody,
)

const ConsentAnswer = Strict(
  { decision: Named('granted', 'denied'), policyVersion: Text, decidedAt: Time },
  about.ConsentAnswer,
)

export const operation = { scoped: true, idempotent: true, rate: 'calls' } as const
export const report = { scoped: true, idempotent: 'optional', rate: 'calls', errors: ['ConsentRequired'] } as const
export const nothing = (description: string) => ({ 204: Type.Null({ description }) })

/** POST /sessions, /sessions/renew, /sessions/close, /sessions/consent, /context/page, POST and DELETE /sessions/identify */
export const sessionRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { sessions } = coreOf(app.gateway)
  const grants = grantsOf(app.gateway)

  app.post(
    '/sessions',
    {
      schema: { ...operations.createSession, body: CreateSessionBody, response: { 201: SessionAnswer } },
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
      // Only scoped routes get this by default. The answer has credentials.
      reply.header('cache-control', 'no-store')
      return reply.code(201).send(answerSession(answerOnce(reply, answer), reply))
    },
  )

  app.post(
    '/sessions/renew',
    {
      schema: { ...operations.renewSession, body: RenewSessionBody, response: { 200: SessionAnswer } },
      config: { ...operation, expiredToo: true },
    },
    async (request, reply) => {
      const renewal = { ...request.body, clientAddress: request.ip }
      return answerSession(await callOnce(reply, sessions.renewSession, renewal), reply)
    },
  )

  app.post(
    '/sessions/close',
    {
      schema: { ...operations.closeSession, body: CloseSessionBody, response: { 200: CloseSessionAnswer } },
      config: { ...operation, closedToo: true },
    },
    async (request, reply) => {
      const scope = request.body.scope === 'panel' ? CloseScope.PANEL : CloseScope.CONTINUITY
      const answer = await callOnce(reply, sessions.closeSession, { scope })
      if (answer.state === 'closed') grants.forget(visitorOf(request).credentials)
      return answer
    },
  )

  app.post(
    '/sessions/consent',
    {
      schema: { ...operations.recordConsent, body: ConsentBody, response: { 200: ConsentAnswer } },
      config: operation,
    },
    async (request, reply) => {
      const { policyVersion } = request.body
      const decision = request.body.decision === 'granted' ? ConsentDecision.GRANTED : ConsentDecision.DENIED
      const { consent } = await callOnce(reply, sessions.recordConsent, { policyVersion, decision })
      if (!consent) throw new Error('the answer of the core has no decision')
      const isGranted = consent.decision === ConsentDecision.GRANTED
      return { ...withTimes(consent), decision: isGranted ? ('granted' as const) : ('denied' as const) }
    },
  )

  const identityChecks = { ...operation, closedToo: true } as const

  app.post(
    '/sessions/identify',
    {
      schema: { ...operations.identifyVisitor, body: IdentifyBody, response: { 200: IdentityAnswer } },
      config: {
        ...identityChecks,
        advertisedBy: 'identity',
        errors: ['IdentityAssertionInvalid', 'IdentityAssertionExpired', 'IdentityAssertionReplayed'],
      },
    },
    async (request, reply) => {
      const identification = { ...request.body, clientAddress: request.ip }
      return answerIdentity(await callOnce(reply, sessions.identifyVisitor, identification), reply)
    },
  )

  app.delete(
    '/sessions/identify',
    {
      schema: { ...operations.clearIdentity, body: ClearIdentityBody, response: { 200: IdentityAnswer } },
      config: { ...identityChecks, bodyOptional: true },
    },
    async (request, reply) => {
      const clearing = { ...request.body, clientAddress: request.ip }
      return answerIdentity(await callOnce(reply, sessions.clearIdentity, clearing), reply)
    },
  )

  app.post(
    '/context/page',
    {
      schema: {
        ...operations.reportPageContext,
        body: PageContext,
        response: nothing('The page context is stored.'),
      },
      config: { ...report, advertisedBy: 'pageContext' },
    },
    async (request, reply) => {
      const { credentials } = visitorOf(request)
      const idempotencyKey = idempotencyKeyOf(request) || undefined
      const report = { credentials, pageContext: toPageContext(request.body), idempotencyKey }
      answerOnce(reply, await sessions.reportPageContext(report, callOptions(request)))
      return reply.code(204).send(null)
    },
  )
}

/** Marks an answer that repeats the answer to an earlier request with the same key. */
export function answerOnce<Answer extends { replayed: boolean }>(
  reply: FastifyReply,
  { replayed, ...answer }: Answer,
): Omit<Answer, 'replayed'> {
  if (replayed) reply.header('idempotency-replayed', 'true')
  return answer
}

/** Calls a core for the visitor of the request, once for the key of the request. */
export async function callOnce<Input extends object, Answer extends { replayed: boolean }>(
  reply: FastifyReply,
  method: (input: Input, options: CallOptions) => Promise<Answer>,
  input: Input,
): Promise<Omit<Answer, 'replayed'>> {
  const { request } = reply
  return answerOnce(reply, await method({ ...input, ...operationOf(request) }, callOptions(request)))
}

/** Converts a session to the public contract, and caches the authorization of its grant. */
function answerSession({ session }: { session?: SessionContent }, reply: FastifyReply): SessionAnswer {
  if (session?.replay === undefined) throw new Error('the answer of the core has no session')
  grantsOf(reply.server.gateway).remember(reply.request.headers.origin!, session)
  const { replay, continuityState, identityState, displayName } = session
  const states = { continuity: { state: continuityState }, identity: { state: identityState, displayName } }
  return { ...withTimes(session), replay, ...states }
}

function answerIdentity(answer: { session?: SessionContent }, reply: FastifyReply): IdentityAnswer {
  const { credentials, sessionId } = visitorOf(reply.request)
  // A new session replaced the old one, so the grant of the request is no longer valid.
  if (answer.session?.sessionId !== sessionId) grantsOf(reply.server.gateway).forget(credentials)
  const { renewalToken, ...rest } = answerSession(answer, reply)
  return renewalToken === '' ? rest : { renewalToken, ...rest }
}
