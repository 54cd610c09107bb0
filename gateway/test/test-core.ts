import type { MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { type ConnectRouter, createRouterTransport, type Transport } from '@connectrpc/connect'
import { CommandService, type UploadScreenshotRequest } from '#proto/command/v1/command_pb.js'
import type { DeliveryAttempt } from '#proto/lead/v1/delivery_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import {
  MessagingService,
  type SendVisitorMessagesRequest,
  type Subscribe,
  type VisitorMessageResultSchema,
} from '#proto/messaging/v1/messaging_pb.js'
import { type CapabilitiesSchema, SessionService } from '#proto/session/v1/session_pb.js'
import type { VisitorCredentials } from '#proto/session/v1/visitor_pb.js'
import type { PublicErrorCode } from '../../contract/errors.ts'
import {
  ATTEMPT,
  acceptedOf,
  CONFIG,
  EPOCH,
  infoOf,
  MESSAGE,
  refusal,
  SESSION_END,
  sessionOf,
  UPLOAD,
  unreachable,
} from './core-answers.ts'
import { createTestLink, eventFrame, type TestLink } from './test-link.ts'

export const SITE = 'https://shop.example'
export const GRANT = 'grant-1'

/** A scripted in-memory core. */
export function createTestCore() {
  const core = {
    origins: new Set([SITE]),
    /** Result of the check of each grant. An `ok` grant has the session `ses_<grant>`. */
    grants: new Map<string, PublicErrorCode | 'ok'>([[GRANT, 'ok']]),
    calls: [] as { method: string; request: unknown; headers: Headers }[],
    links: [] as TestLink[],
    log: [] as { sequence: number; type: string; json: string }[],
    down: false,
    changedSession: {},
    /** Expiry of grants in the answer of AuthorizeGrant. */
    grantEnds: SESSION_END,
    /** Time in the answer of AuthorizeGrant until which the session can be renewed. */
    renewableUntil: SESSION_END + 7_200_000,
    /** Capabilities in the answer of AuthorizeGrant. */
    capabilities: { identity: true, typing: true, pageContext: true, screenshots: true } as
      | MessageInitShape<typeof CapabilitiesSchema>
      | undefined,
    refuseNext: undefined as Error | undefined,
    /** Site keys of installations. */
    siteKeys: new Set(['pk_demo']),
    siteTitle: 'Shop',
    /** Error with which the core rejects GetConfig. */
    refuseConfig: undefined as PublicErrorCode | undefined,
    onSend: answerSends as (
      request: SendVisitorMessagesRequest,
    ) => ReturnType<typeof answerSends> | Promise<ReturnType<typeof answerSends>>,
    onSubscribe: openSubscription,
    messages: [MESSAGE],
    /** Runs before the core lists the history. Tests replace it to delay the answer. */
    onList: async () => {},
    /** Error with which the core rejects assertions. */
    refuseAssertion: undefined as PublicErrorCode | undefined,
    /** Parts that the core received, per upload. */
    uploads: [] as UploadScreenshotRequest['part'][][],
    openUploads: 0,
    /** Fields that replace the defaults of delivery attempts in answers. */
    attempt: {} as Omit<Partial<DeliveryAttempt>, '$typeName' | '$unknown'>,
    /** Called before each part of an upload is read, with the index of the part. */
    onUploadPart: (_place: number): void | Promise<void> => {},
    count: (method: string) => core.calls.filter((call) => call.method === method).length,
    publish,
    transport: {} as Transport,
    /** The services, to serve the core over HTTP. */
    routes,
  }

  function publish(type: string, data: object = {}): number {
    const sequence = (core.log.at(-1)?.sequence ?? 0) + 1
    const event = { sequence, type, json: JSON.stringify({ sequence, type, data }) }
    core.log.push(event)
    for (const link of core.links) {
      const subscriptionIds = [...link.open.keys()]
      if (subscriptionIds.length > 0) link.push(eventFrame(subscriptionIds, event))
    }
    return sequence
  }

  function openSubscription(link: TestLink, { subscriptionId, credentials, ...start }: Subscribe): void {
    const state = core.grants.get(credentials!.accessGrant)
    if (state !== 'ok') {
      link.push({ case: 'closed', value: { subscriptionId, error: infoOf(state ?? 'GrantInvalid') } })
      return
    }
    const head = core.log.at(-1)?.sequence ?? 0
    const seen = Math.max(start.afterSequence ?? -1, Number(start.lastEventId?.split('-')[1] ?? -1))
    const sequence = seen < 0 ? head : seen
    const sessionId = `ses_${credentials!.accessGrant}`
    link.open.set(subscriptionId, { ...start, subscriptionId, credentials })
    link.push({ case: 'opened', value: { subscriptionId, sessionId, epoch: EPOCH, sequence } })
    link.push(
      ...core.log.filter((event) => event.sequence > sequence).map((event) => eventFrame([subscriptionId], event)),
    )
  }

  function answerSends({
    messages,
  }: SendVisitorMessagesRequest): MessageInitShape<typeof VisitorMessageResultSchema>[] {
    return messages.map(({ credentials, clientOperationId }) => {
      const state = core.grants.get(credentials!.accessGrant) ?? 'GrantInvalid'
      if (state !== 'ok') return { outcome: { case: 'error', value: infoOf(state) } }
      const sequence = publish('message.accepted', { clientOperationId })
      const value = acceptedOf(`ses_${credentials!.accessGrant}`, clientOperationId, sequence)
      return { outcome: { case: 'accepted', value } }
    })
  }

  function verify(credentials: VisitorCredentials | undefined, { expiredToo = false } = {}): string {
    const state = core.grants.get(credentials!.accessGrant) ?? 'GrantInvalid'
    if (state !== 'ok' && !(expiredToo && state === 'GrantExpired')) throw refusal(state)
    return `ses_${credentials!.accessGrant}`
  }

  function note(method: string, request: unknown, { requestHeader }: { requestHeader: Headers }): void {
    core.calls.push({ method, request, headers: requestHeader })
    const error = core.refuseNext
    core.refuseNext = undefined
    if (error !== undefined) throw error
  }

  function routes(router: ConnectRouter): void {
    router.service(SessionService, {
      checkOrigin(request, context) {
        note('checkOrigin', request, context)
        return { allowed: core.origins.has(request.origin) }
      },
      getConfig(request, context) {
        note('getConfig', request, context)
        if (core.refuseConfig) throw refusal(core.refuseConfig)
        const { publicSiteKey } = request
        if (!core.siteKeys.has(publicSiteKey)) throw refusal('InstallationNotFound')
        return { config: { ...CONFIG, publicSiteKey, appearance: { ...CONFIG.appearance, title: core.siteTitle } } }
      },
      createSession(request, context) {
        note('createSession', request, context)
        return { session: sessionOf('ses_grant-1'), replayed: request.idempotencyKey === 'again' }
      },
      renewSession(request, context) {
        note('renewSession', request, context)
        const sessionId = verify(request.credentials, { expiredToo: true })
        return { session: sessionOf(sessionId), replayed: request.idempotencyKey === 'again' }
      },
      identifyVisitor(request, context) {
        note('identifyVisitor', request, context)
        if (core.refuseAssertion) throw refusal(core.refuseAssertion)
        const replayed = request.idempotencyKey === 'again'
        // The session depends on the assertion, so that tests can choose the person.
        const known = { identityState: 'verified', displayName: 'Ada', continuityState: 'continued' }
        return { session: { ...sessionOf(`ses_${request.assertion}`), ...known, ...core.changedSession }, replayed }
      },
      clearIdentity(request, context) {
        note('clearIdentity', request, context)
        const session = { ...sessionOf('ses_nobody'), ...core.changedSession }
        return { session, replayed: request.idempotencyKey === 'again' }
      },
      reportPageContext(request, context) {
        note('reportPageContext', request, context)
        verify(request.credentials)
        return { replayed: request.idempotencyKey === 'again' }
      },
      authorizeGrant(request, context) {
        note('authorizeGrant', request, context)
        if (request.closedToo && core.grants.get(request.credentials!.accessGrant) === 'SessionClosed')
          return { sessionId: `ses_${request.credentials!.accessGrant}`, expiresAt: timestampFromMs(core.grantEnds) }
        const { capabilities } = core
        const expiresAt = timestampFromMs(core.grantEnds)
        const renewableUntil = timestampFromMs(core.renewableUntil)
        const sessionId = verify(request.credentials, request)
        return { sessionId, expiresAt, renewableUntil, ...(capabilities && { capabilities }) }
      },
      recordConsent(request, context) {
        note('recordConsent', request, context)
        verify(request.credentials)
        const { policyVersion, decision } = request
        const consent = {
          policyVersion,
          decision,
          policyUrl: 'https://shop.example/p',
          decidedAt: timestampFromMs(Date.UTC(2026, 0, 2)),
        }
        return { consent, replayed: request.idempotencyKey === 'again' }
      },
      closeSession(request, context) {
        note('closeSession', request, context)
        const closed = core.grants.get(request.credentials!.accessGrant) === 'SessionClosed'
        const sessionId = closed ? `ses_${request.credentials!.accessGrant}` : verify(request.credentials)
        return { sessionId, state: request.scope === 2 ? 'closed' : 'active' }
      },
    })
    router.service(CommandService, {
      acknowledgeNavigation(request, context) {
        note('acknowledgeNavigation', request, context)
        verify(request.credentials)
        if (request.commandId !== 'cmd_1') throw refusal('CommandNotFound')
        return { commandId: request.commandId, state: request.outcome, replayed: request.idempotencyKey === 'again' }
      },
      acknowledgeScreenshot(request, context) {
        note('acknowledgeScreenshot', request, context)
        verify(request.credentials)
        return {
          requestId: request.requestId,
          state: request.consent,
          ...(request.consent === 'granted' && { upload: UPLOAD }),
        }
      },
      async uploadScreenshot(requests, context) {
        note('uploadScreenshot', undefined, context)
        const parts: UploadScreenshotRequest['part'][] = []
        core.uploads.push(parts)
        core.openUploads++
        try {
          await core.onUploadPart(0)
          for await (const { part } of requests) {
            parts.push(part)
            await core.onUploadPart(parts.length)
          }
        } finally {
          core.openUploads--
        }
        const byteLength = parts.reduce((sum, part) => sum + (part.case === 'chunk' ? part.value.length : 0), 0)
        return { requestId: 'scr_1', state: 'uploaded', byteLength, sha256: 'ab12' }
      },
    })
    router.service(LeadService, {
      createDeliveryAttempt(request, context) {
        note('createDeliveryAttempt', request, context)
        const { leadId, subscriptionId, idempotencyKey } = request
        if (leadId !== 'lead_1') throw refusal('LeadNotFound')
        return {
          attempt: { ...ATTEMPT, leadId, subscriptionId, ...core.attempt },
          existing: idempotencyKey === 'again',
        }
      },
      retryDeliveryAttempt(request, context) {
        note('retryDeliveryAttempt', request, context)
        if (request.attemptId !== 'att_1') throw refusal('AttemptNotFound')
        const attempt = { ...ATTEMPT, attemptId: 'att_2', attemptNumber: 2, ...core.attempt }
        return { attempt, existing: request.idempotencyKey === 'again' }
      },
    })
    router.service(MessagingService, {
      async sendVisitorMessages(request, context) {
        note('sendVisitorMessages', request, context)
        return { results: await core.onSend(request) }
      },
      async listVisitorMessages(request, context) {
        note('listVisitorMessages', request, context)
        verify(request.credentials)
        await core.onList()
        return { messages: core.messages, hasMore: false, lastSequence: 9, oldestSequence: 1 }
      },
      async *watchEvents(requests, context) {
        note('watchEvents', undefined, context)
        const link = createTestLink()
        core.links.push(link)
        link.push({ case: 'ready', value: {} })
        void (async () => {
          for await (const { commands } of requests)
            for (const { command } of commands) {
              link.commands.push(command)
              if (command.case === 'unsubscribe') link.open.delete(command.value.subscriptionId)
              if (command.case !== 'subscribe') continue
              link.subscribed.push(command.value)
              core.onSubscribe(link, command.value)
            }
        })().catch(() => {})
        try {
          yield* link.responses()
        } finally {
          core.links.splice(core.links.indexOf(link), 1)
        }
      },
    })
  }
  const inner = createRouterTransport(routes)
  core.transport = {
    unary: async (...call) => (core.down ? Promise.reject(unreachable()) : inner.unary(...call)),
    stream: async (...call) => (core.down ? Promise.reject(unreachable()) : inner.stream(...call)),
  }
  return core
}

export type TestCore = ReturnType<typeof createTestCore>
