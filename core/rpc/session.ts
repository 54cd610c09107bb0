import type { Message } from '@bufbuild/protobuf'
import type { ConnectRouter, HandlerContext } from '@connectrpc/connect'
import {
  AuthorizeGrantResponseSchema,
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
import type { Session, SessionContent } from '../sessions/model.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { callerWorkspace, requiredWorkspace } from '../transport/caller.ts'
import { closeSession, createSession, renewSession, reportPage, revokeSession } from '../visitors/sessions.ts'
import { installationFor, isOriginKnown } from '../workspaces/workspaces.ts'
import { toWidgetConfig } from './installations.ts'
import { auditedWrites } from './policy-changes.ts'
import { fromCredentials, fromPageContext, nameOf, ofVisitor, toProto } from './proto-values.ts'

export function sessionService(router: ConnectRouter, core: Core) {
  const { config } = core
  const audited = auditedWrites(core)
  /** The state is `closed` if the connection is disabled, although the stored status stays `active`. */
  async function stateOf({ sessionId, status }: Session) {
    if (status !== 'active') return status
    const { end = 'active' } = await visitorAccessOf(core).endOf(sessionId)
    return end === 'disabled' ? 'closed' : end
  }

  const toResponse = async (session: Session) => ({
    session: toSession(session, await stateOf(session), await banOf(core, session)),
  })

  const answered = ({ content, replayed }: { content: SessionContent; replayed: boolean }) => ({
    session: toProto(SessionContentSchema, content),
    replayed,
  })

  async function changed(
    request: Message & { sessionId: string },
    context: HandlerContext,
    change: (workspaceId: string) => Promise<Session>,
  ) {
    const { sessionId: target } = request
    const { workspaceId } = await findSession(core, target, callerWorkspace(context))
    return toResponse(await audited(context, request, { workspaceId, target }, () => change(workspaceId)))
  }

  async function unbanVerified(context: HandlerContext, request: UnbanVisitorRequest, subject: VerifiedSubject) {
    const workspaceId = requiredWorkspace(context, subject.workspaceId)
    // The host's user id is personal data, so the record of the change does not contain it.
    await audited(context, request, { workspaceId, target: '', settings: [] }, () =>
      unbanSubject(core, workspaceId, subject.externalSubject),
    )
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

    createSession: async ({ pageContext, ...rest }) =>
      answered(await createSession(core, { ...rest, pageContext: fromPageContext(pageContext) })),

    renewSession: async (request) => answered(await renewSession(core, ofVisitor(request))),

    identifyVisitor: async (request) => answered(await identifyVisitor(core, ofVisitor(request))),

    clearIdentity: async (request) => answered(await clearIdentity(core, ofVisitor(request))),

    async recordConsent(request) {
      const decision = nameOf(DecisionMessage, request.decision)
      if (!decision) throw invalid('/decision', 'enum')
      const { content, replayed } = await recordConsent(core, { ...ofVisitor(request), decision })
      return { consent: toProto(ConsentRecordSchema, content), replayed }
    },

    reportPageContext: (request) =>
      reportPage(core, { ...ofVisitor(request), pageContext: fromPageContext(request.pageContext) ?? {} }),

    async authorizeGrant({ credentials, closedToo, expiredToo, reportsHere }) {
      const sent = fromCredentials(credentials)
      const { session, installation, grantExpiresAt } =
        reportsHere === undefined
          ? await visitorAccessOf(core).authorize(sent, { closedToo, expiredToo })
          : await authorizeReport(core, sent, 'presence')
      if (reportsHere) notePanelUse(core, session, 'report')
      const { capabilities } = installation
      return toProto(AuthorizeGrantResponseSchema, { ...session, expiresAt: grantExpiresAt, capabilities })
    },

    async closeSession(request) {
      const scope = nameOf(CloseScope, request.scope)
      if (!scope) throw invalid('/scope', 'enum')
      const { content, replayed } = await closeSession(core, { ...ofVisitor(request), scope })
      return { ...content, replayed }
    },

    async getSession({ sessionId }, context) {
      return toResponse(await findSession(core, sessionId, callerWorkspace(context)))
    },

    revokeSession: (request, context) =>
      changed(request, context, (workspaceId) => revokeSession(core, request.sessionId, workspaceId)),

    banVisitor(request, context) {
      const { sessionId, reason, addressBanSeconds } = request
      return changed(request, context, (scope) => banSession(core, sessionId, reason, scope, addressBanSeconds))
    },

    unbanVisitor(request, context) {
      const { sessionId, subject } = request
      if (subject) return unbanVerified(context, request, subject)
      return changed(request, context, (workspaceId) => unbanSession(core, sessionId, workspaceId))
    },
  })
}

function toSession(session: Session, state: string, ban: Awaited<ReturnType<typeof banOf>>) {
  const { identity } = session
  return toProto(SessionSchema, {
    ...session,
    ...identity,
    ...ban,
    state,
    expiresAt: session.renewableUntil,
    identityState: identity ? 'verified' : 'anonymous',
    context: identity?.context && Object.fromEntries(identity.context),
    addressKnown: session.network !== undefined,
    consent: latestConsent(session),
  })
}
