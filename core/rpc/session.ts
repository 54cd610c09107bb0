import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { ConnectRouter, HandlerContext } from '@connectrpc/connect'
import {
  CloseScope,
  ConsentRecordSchema,
  ConsentDecision as DecisionMessage,
  SessionContentSchema,
  SessionSchema,
  SessionService,
  type UnbanVisitorRequest,
  type VerifiedSubject,
} from '#proto/session/v1/session_pb.js'
import { readAvailability } from '../availability/availability.ts'
import { banOf, banSession, findSession, unbanSession, unbanSubject } from '../bans/bans.ts'
import { latestConsent, recordConsent } from '../consents/consents.ts'
import { authorizeReport, notePanelUse } from '../consents/observations.ts'
import type { Core } from '../core.ts'
import { invalid } from '../errors.ts'
import { clearIdentity, identifyVisitor } from '../identity/identification.ts'
import { findPicture } from '../pictures/pictures.ts'
import { usualAnswersOf } from '../reports/usual-answer.ts'
import type { Session } from '../sessions/model.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { callerOf, requiredWorkspace } from '../transport/caller.ts'
import { renewSession } from '../visitors/renewal.ts'
import { closeSession, createSession, reportPage, revokeSession } from '../visitors/sessions.ts'
import { installationFor, isOriginKnown } from '../workspaces/workspaces.ts'
import { toWidgetConfig } from './installations.ts'
import { auditedWrites } from './policy-changes.ts'
import { nameOf, toProto } from './proto-values.ts'
import { fromCredentials, fromPageContext } from './visitor.ts'

export function sessionService(router: ConnectRouter, core: Core): void {
  const { config } = core
  const audited = auditedWrites(core)
  /**
   * Returns the state of a session. If the connection was disabled, the session has ended although
   * its stored status is still `active`. Its state is then `closed`.
   */
  async function stateOf({ sessionId, status }: Session): Promise<string> {
    if (status !== 'active') return status
    const { end = 'active' } = await visitorAccessOf(core).endOf(sessionId)
    return end === 'disabled' ? 'closed' : end
  }

  const toResponse = async (session: Session) => ({
    session: toSession(session, await stateOf(session), await banOf(core, session)),
  })

  async function unbanVerified(context: HandlerContext, request: UnbanVisitorRequest, subject: VerifiedSubject) {
    const workspaceId = requiredWorkspace(context, subject.workspaceId)
    // The host's user id is personal data, so the record of the change does not contain it.
    await audited(context, request, { workspaceId, target: '', settings: [] }, async () => {
      await unbanSubject(core, workspaceId, subject.externalSubject)
      return {}
    })
    return {}
  }

  router.service(SessionService, {
    async checkOrigin({ origin }) {
      return { allowed: await isOriginKnown(core, origin) }
    },

    async getConfig({ publicSiteKey, origin }) {
      const installation = await installationFor(core, publicSiteKey, origin)
      const availability = await readAvailability(core, installation)
      const usualAnswerMinutes = usualAnswersOf(core).minutesOf(installation.workspaceId)
      return { config: toWidgetConfig(installation, { ...availability, usualAnswerMinutes }, config) }
    },

    getPicture: ({ pictureId }) => findPicture(core, pictureId),

    async createSession({ pageContext, ...rest }) {
      const page = fromPageContext(pageContext)
      const { content, replayed } = await createSession(core, { ...rest, pageContext: page })
      return { session: toProto(SessionContentSchema, content), replayed }
    },

    async renewSession({ credentials, ...rest }) {
      const request = { ...rest, credentials: fromCredentials(credentials) }
      const { content, replayed } = await renewSession(core, request)
      return { session: toProto(SessionContentSchema, content), replayed }
    },

    async identifyVisitor({ credentials, ...rest }) {
      const request = { ...rest, credentials: fromCredentials(credentials) }
      const { content, replayed } = await identifyVisitor(core, request)
      return { session: toProto(SessionContentSchema, content), replayed }
    },

    async clearIdentity({ credentials, ...rest }) {
      const request = { ...rest, credentials: fromCredentials(credentials) }
      const { content, replayed } = await clearIdentity(core, request)
      return { session: toProto(SessionContentSchema, content), replayed }
    },

    async recordConsent({ credentials, policyVersion, decision, idempotencyKey }) {
      const named = nameOf(DecisionMessage, decision)
      if (!named) throw invalid('/decision', 'enum')
      const { content, replayed } = await recordConsent(core, {
        credentials: fromCredentials(credentials),
        policyVersion,
        decision: named,
        idempotencyKey,
      })
      return { consent: toProto(ConsentRecordSchema, content), replayed }
    },

    async reportPageContext({ credentials, pageContext, idempotencyKey }) {
      return reportPage(core, {
        credentials: fromCredentials(credentials),
        pageContext: fromPageContext(pageContext) ?? {},
        idempotencyKey,
      })
    },

    async authorizeGrant({ credentials, closedToo, expiredToo, reportsHere }) {
      const sent = fromCredentials(credentials)
      const { session, installation, grantExpiresAt } =
        reportsHere === undefined
          ? await visitorAccessOf(core).authorize(sent, { closedToo, expiredToo })
          : await authorizeReport(core, sent, 'presence')
      if (reportsHere) notePanelUse(core, session, 'report')
      return {
        sessionId: session.sessionId,
        expiresAt: timestampFromDate(grantExpiresAt),
        renewableUntil: timestampFromDate(session.renewableUntil),
        capabilities: installation.capabilities,
        conversationId: session.conversationId,
        workspaceId: session.workspaceId,
      }
    },

    async closeSession({ credentials, scope, idempotencyKey }) {
      const named = nameOf(CloseScope, scope)
      if (!named) throw invalid('/scope', 'enum')
      const { content, replayed } = await closeSession(core, {
        credentials: fromCredentials(credentials),
        scope: named,
        idempotencyKey,
      })
      return { ...content, replayed }
    },

    async getSession({ sessionId }, context) {
      return toResponse(await findSession(core, sessionId, callerOf(context).workspaceId))
    },

    async revokeSession(request, context) {
      const { sessionId } = request
      const { workspaceId } = await findSession(core, sessionId, callerOf(context).workspaceId)
      const revoked = await audited(context, request, { workspaceId, target: sessionId }, () =>
        revokeSession(core, sessionId, workspaceId),
      )
      return toResponse(revoked)
    },

    async banVisitor(request, context) {
      const { sessionId, reason, addressBanSeconds } = request
      const { workspaceId } = await findSession(core, sessionId, callerOf(context).workspaceId)
      const banned = await audited(context, request, { workspaceId, target: sessionId }, () =>
        banSession(core, sessionId, reason, workspaceId, addressBanSeconds),
      )
      return toResponse(banned)
    },

    async unbanVisitor(request, context) {
      const { sessionId, subject } = request
      if (subject) return unbanVerified(context, request, subject)
      const { workspaceId } = await findSession(core, sessionId, callerOf(context).workspaceId)
      const unbanned = await audited(context, request, { workspaceId, target: sessionId }, () =>
        unbanSession(core, sessionId, workspaceId),
      )
      return toResponse(unbanned)
    },
  })
}

function toSession(
  session: Session,
  state: string,
  { visitorBanned, addressBannedUntil }: Awaited<ReturnType<typeof banOf>>,
) {
  const { identity } = session
  return toProto(SessionSchema, {
    ...session,
    state,
    expiresAt: session.renewableUntil,
    identityState: identity ? 'verified' : 'anonymous',
    ...(identity && {
      externalSubject: identity.externalSubject,
      displayName: identity.displayName,
      context: identity.context && Object.fromEntries(identity.context),
      verifiedAt: identity.verifiedAt,
    }),
    visitorBanned,
    addressKnown: session.network !== undefined,
    addressBannedUntil,
    consent: latestConsent(session),
  })
}
