import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ConnectRouter } from '@connectrpc/connect'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import {
  CloseScope,
  type SessionContentSchema,
  SessionSchema,
  SessionService,
  type WidgetConfigSchema,
} from '#proto/session/v1/session_pb.js'
import type { CoreConfig } from '../config.ts'
import type { CoreContext } from '../context.ts'
import { ServiceError } from '../errors.ts'
import type { SessionContent } from '../visitors/session-content.ts'
import type { Session } from '../visitors/session-store.ts'
import type { Installation } from '../workspaces/workspace-store.ts'
import { callerOf } from './caller.ts'
import { toForms } from './forms.ts'
import { fromCredentials, fromPageContext, toPageContext } from './visitor.ts'

/** `service.session.v1.SessionService` over the domain. */
export function sessionService(
  router: ConnectRouter,
  { sessions, renewals, identification, workspaces, visitorAccess, config, now }: CoreContext,
): void {
  const toResponse = async (session: Session) => ({
    session: toSession(session, await sessions.isVisitorBanned(session), now()),
  })

  router.service(SessionService, {
    async checkOrigin({ origin }) {
      return { allowed: await workspaces.isOriginKnown(origin) }
    },

    async getConfig({ publicSiteKey, origin }) {
      return { config: toWidgetConfig(await workspaces.installationFor(publicSiteKey, origin), config) }
    },

    async createSession({ publicSiteKey, origin, clientInstanceId, locale, pageContext, idempotencyKey }) {
      const page = fromPageContext(pageContext)
      const { content, replayed } = await sessions.create({
        publicSiteKey,
        origin,
        clientInstanceId,
        ...(locale === undefined ? {} : { locale }),
        ...(page && { pageContext: page }),
        idempotencyKey,
      })
      return { session: toSessionContent(content), replayed }
    },

    async renewSession({ credentials, sessionId, renewalToken, lastSeenEventId, idempotencyKey }) {
      const { content, replayed } = await renewals.renew({
        credentials: fromCredentials(credentials),
        sessionId,
        renewalToken,
        ...(lastSeenEventId === undefined ? {} : { lastSeenEventId }),
        idempotencyKey,
      })
      return { session: toSessionContent(content), replayed }
    },

    async identifyVisitor({ credentials, assertion, idempotencyKey }) {
      const { content, replayed } = await identification.identify({
        credentials: fromCredentials(credentials),
        assertion,
        idempotencyKey,
      })
      return { session: toSessionContent(content), replayed }
    },

    async clearIdentity({ credentials, idempotencyKey }) {
      const { content, replayed } = await identification.clear({
        credentials: fromCredentials(credentials),
        idempotencyKey,
      })
      return { session: toSessionContent(content), replayed }
    },

    async reportPageContext({ credentials, pageContext, idempotencyKey }) {
      return sessions.reportPage({
        credentials: fromCredentials(credentials),
        pageContext: fromPageContext(pageContext) ?? {},
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      })
    },

    async authorizeGrant({ credentials, closedToo }) {
      const { session, installation, grantExpiresAt } = await visitorAccess.authorize(fromCredentials(credentials), {
        closedToo,
      })
      const { capabilities } = installation
      return { sessionId: session.sessionId, expiresAt: timestampFromDate(grantExpiresAt), capabilities }
    },

    async closeSession({ credentials, scope, idempotencyKey }) {
      const scopes = {
        [CloseScope.PANEL]: 'panel',
        [CloseScope.CONTINUITY]: 'continuity',
        [CloseScope.UNSPECIFIED]: undefined,
      } as const
      const named = scopes[scope]
      if (!named) throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/scope', rule: 'enum' }] })
      const { content, replayed } = await sessions.close({
        credentials: fromCredentials(credentials),
        scope: named,
        idempotencyKey,
      })
      return { ...content, replayed }
    },

    async getSession({ sessionId }, context) {
      return toResponse(await sessions.find(sessionId, callerOf(context).workspaceId))
    },

    async revokeSession({ sessionId }, context) {
      return toResponse(await sessions.revoke(sessionId, callerOf(context).workspaceId))
    },

    async banVisitor({ sessionId, reason }, context) {
      return toResponse(await sessions.ban(sessionId, reason, callerOf(context).workspaceId))
    },

    async unbanVisitor({ sessionId }, context) {
      return toResponse(await sessions.unban(sessionId, callerOf(context).workspaceId))
    },
  })
}

function toSessionContent({
  expiresAt,
  renewAfter,
  ...content
}: SessionContent): MessageInitShape<typeof SessionContentSchema> {
  return { ...content, expiresAt: timestampFromDate(expiresAt), renewAfter: timestampFromDate(renewAfter) }
}

function toSession(session: Session, visitorBanned: boolean, now: number) {
  const { sessionId, workspaceId, connectionId, publicSiteKey, conversationId, visitorId, origin, locale } = session
  const { identity, pageContextAt } = session
  const isOver = session.status === 'active' && session.grantExpiresAt.getTime() <= now
  return create(SessionSchema, {
    sessionId,
    workspaceId,
    connectionId,
    publicSiteKey,
    conversationId,
    visitorId,
    origin,
    locale,
    pageContext: toPageContext(session.pageContext),
    state: isOver ? 'expired' : session.status,
    createdAt: timestampFromDate(session.createdAt),
    expiresAt: timestampFromDate(session.grantExpiresAt),
    identityState: identity ? 'verified' : 'anonymous',
    ...(identity && {
      externalSubject: identity.externalSubject,
      displayName: identity.displayName,
      ...(identity.context && { context: Object.fromEntries(identity.context) }),
      verifiedAt: timestampFromDate(identity.verifiedAt),
    }),
    visitorBanned,
    ...(pageContextAt && { pageContextAt: timestampFromDate(pageContextAt) }),
  })
}

/** Languages of the browser package. */
const supportedLocales = ['en', 'de', 'es', 'fr', 'ar', 'ja']

function toWidgetConfig(installation: Installation, config: CoreConfig): MessageInitShape<typeof WidgetConfigSchema> {
  const { publicSiteKey, defaultLocale, appearance, capabilities, forms } = installation
  return {
    publicSiteKey,
    defaultLocale,
    supportedLocales: [...new Set([defaultLocale, ...supportedLocales])],
    appearance,
    capabilities,
    forms: toForms({
      ...(capabilities.preChatForm && { preChat: forms?.preChat ?? [] }),
      ...(capabilities.offlineForm && { offline: forms?.offline ?? [] }),
    }),
    consent: { required: false },
    online: true,
    limits: {
      bodyMaxLength: config.MESSAGE_BODY_MAX_LENGTH,
      pageContextMaxBytes: config.PAGE_CONTEXT_MAX_BYTES,
      historyPageMax: config.HISTORY_PAGE_MAX,
      screenshotMaxBytes: config.SCREENSHOT_MAX_BYTES,
      outboxMax: config.OUTBOX_MAX,
    },
    realtime: {
      heartbeatSeconds: config.HEARTBEAT_SECONDS,
      reconnectMinMs: config.RECONNECT_MIN_MS,
      reconnectMaxMs: config.RECONNECT_MAX_MS,
    },
  }
}
