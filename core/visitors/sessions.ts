import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { Bans } from '../bans/bans.ts'
import type { NetworkBans } from '../bans/network-bans.ts'
import type { Consents } from '../consents/consents.ts'
import type { Observations } from '../consents/observations.ts'
import { ServiceError } from '../errors.ts'
import type { Idempotency, Repeatable } from '../idempotency/idempotency.ts'
import type { Subjects } from '../identity/subjects.ts'
import { epochIn } from '../ids.ts'
import type { PlannedIds } from '../keys/keyring.ts'
import { repairLocale } from '../repairs.ts'
import { field, text, validate } from '../rules.ts'
import type { ConversationRecords } from '../sessions/model.ts'
import {
  firstGrantOf,
  type Issued,
  newConversation,
  newSession,
  type PageContext,
  type Session,
  type SessionContent,
  type SessionLifetimes,
  type VisitorCredentials,
} from '../sessions/model.ts'
import type { SessionContents } from '../sessions/session-content.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import type { VisitorIdentifier } from '../sessions/visitor-ids.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { SiteDirectory, Workspaces } from '../workspaces/workspaces.ts'

interface SessionSettings extends SessionLifetimes {
  /** Time in seconds during which a repeated creation returns the same credentials. */
  creationRepeat: number
  idempotencyRetention: number
}

interface NewSession {
  publicSiteKey: string
  origin: string
  clientInstanceId: string
  locale?: string
  pageContext?: PageContext
  /** The client's IP address, if the gateway knows it. */
  clientAddress?: string
  idempotencyKey: string
}

export interface Sessions extends Bans {
  create(request: NewSession): Promise<Repeatable<SessionContent>>
  /**
   * Handles a close request. With the scope `continuity`, ends the session. If the session is
   * verified, the visitor's next identification then begins a new conversation. With the scope
   * `panel`, stores that the panel was closed. The session stays active. A repeated call
   * may use the grant of the closed session. Errors: those of VisitorAccess.authorize and of
   * Idempotency.once.
   */
  close(request: {
    credentials: VisitorCredentials
    scope: 'panel' | 'continuity'
    idempotencyKey: string
  }): Promise<Repeatable<{ sessionId: string; state: 'active' | 'closed' }>>
  /**
   * Stores the valid parts of the page that the visitor's browser reports. Errors: those of
   * VisitorAccess.authorize, RouteNotAdvertised, ConsentRequired.
   */
  reportPage(request: {
    credentials: VisitorCredentials
    pageContext: PageContext
    idempotencyKey?: string
  }): Promise<{ replayed: boolean }>
  /** Errors: `NotFound` for an unknown session or a session of another workspace. */
  revoke(sessionId: string, workspaceId?: string): Promise<Session>
}

interface SessionsDependencies {
  store: SessionStore
  conversations: Pick<ConversationRecords, 'insertOnce'>
  contents: SessionContents
  workspaces: Pick<Workspaces, 'installationFor'>
  directory: Pick<SiteDirectory, 'connections'>
  subjects: Pick<Subjects, 'forgetConversation'>
  consents: Pick<Consents, 'inherit'>
  bans: Bans
  observations: Pick<Observations, 'authorize' | 'pageAtStart' | 'keepPage' | 'panelClosed'>
  networkBans: Pick<NetworkBans, 'networkOf' | 'isBanned'>
  access: VisitorAccess
  plannedIds: PlannedIds
  identifier: Pick<VisitorIdentifier, 'browserOn'>
  idempotency: Idempotency
  wakeups: Pick<Wakeups, 'changing' | 'stateChanged'>
  settings: SessionSettings
  /** Id of the data's history. */
  history: string
  now: () => number
}

/** Creates, reads, bans and ends visitor sessions (contract, sections 2 and 3). */
export function createSessions(dependencies: SessionsDependencies): Sessions {
  const { store, conversations, contents, workspaces, directory, subjects, access } = dependencies
  const {
    bans,
    consents,
    observations,
    networkBans,
    plannedIds,
    identifier,
    idempotency,
    wakeups,
    settings,
    history,
    now,
  } = dependencies
  const { find } = bans

  /**
   * Creates the session of an operation. All runs of the operation, even concurrent ones, create
   * the same session.
   */
  async function start(request: Omit<NewSession, 'idempotencyKey'>, operation: string[]): Promise<Issued> {
    const { origin, clientInstanceId } = request
    const locale = repairLocale(request.locale ?? '')
    const installation = await workspaces.installationFor(request.publicSiteKey, origin)
    const { connectionId, workspaceId, publicSiteKey, consent } = installation
    const pageContext = observations.pageAtStart(installation, request.pageContext)
    const connection = await directory.connections.get(connectionId)
    if (connection?.status !== 'enabled') throw new ServiceError(ErrorCode.CONNECTION_DISABLED)
    const visitorId = await identifier.browserOn(connectionId, clientInstanceId)
    const network = await networkBans.networkOf(connectionId, request.clientAddress)
    const browser = { workspaceId, connectionId, clientInstanceId }
    const isBanned = async () => (await bans.isBrowserBanned(browser)) || networkBans.isBanned(network)
    if (await isBanned()) throw new ServiceError(ErrorCode.VISITOR_BANNED)

    const session = newSession(
      {
        sessionId: plannedIds('ses', ...operation),
        workspaceId,
        connectionId,
        connectionVersion: connection.statusVersion,
        publicSiteKey,
        origin,
        conversationId: plannedIds('cnv', ...operation),
        visitorId,
        clientInstanceId,
        network,
        locale,
        pageContext,
        pageContextAt: pageContext && new Date(now()),
      },
      now(),
      settings,
    )
    const conversation = newConversation(session, now())
    const inserted = await Promise.all([conversations.insertOnce(conversation), store.insertOnce(session)])
    // A ban that was set between the check and the insert did not find this session. So check again.
    if (await isBanned()) {
      await store.end(session.sessionId, 'banned')
      throw new ServiceError(ErrorCode.VISITOR_BANNED)
    }
    if (consent) await consents.inherit(session)
    if (request.pageContext && !pageContext)
      await observations.keepPage(session.sessionId, installation, request.pageContext, session.createdAt)
    if (inserted.includes(false)) {
      const first = await find(session.sessionId)
      return contents.issue(first, firstGrantOf(first), { state: 'new' })
    }
    const replay = {
      state: 'ready' as const,
      epoch: epochIn(history, conversation.epoch),
      lastSequence: 0,
      oldestSequence: 0,
    }
    return contents.issue(session, firstGrantOf(session), { state: 'new', replay })
  }

  async function closeOnce(sessionId: string, scope: 'panel' | 'continuity', operation: string) {
    const isDone = async () => (await find(sessionId)).closedBy === operation
    if (await isDone()) await wakeups.stateChanged(sessionId)
    else {
      const { identity } = await access.live(sessionId)
      if (scope === 'panel') {
        await observations.panelClosed(sessionId)
        return { sessionId, state: 'active' as const }
      }
      // This call must come before the end of the session. Otherwise a new session of the verified
      // visitor could continue the conversation after this session is closed.
      if (identity) await subjects.forgetConversation(identity.subjectId)
      const isClosed = await wakeups.changing([sessionId], () => store.end(sessionId, 'closed', operation))
      if (!isClosed && !(await isDone())) await access.rejectEnded(sessionId)
    }
    return { sessionId, state: 'closed' as const }
  }

  return {
    async create({ idempotencyKey, ...request }) {
      await workspaces.installationFor(request.publicSiteKey, request.origin)
      validate(field('/clientInstanceId', request.clientInstanceId, text(1, 128)))
      // A repeat may come from another address, for example after a change from Wi-Fi to mobile.
      const { origin, clientAddress: _, ...input } = request
      const { result, replayed } = await idempotency.once({
        scope: ['POST /sessions', request.publicSiteKey, origin],
        key: idempotencyKey,
        input,
        keptFor: settings.creationRepeat,
        run: (operation, startedAt) => start(request, [operation, startedAt.toISOString()]),
      })
      return { content: await contents.contentOf(result), replayed }
    },

    async close({ credentials, scope, idempotencyKey }) {
      const { session } = await access.authorize(credentials, { closedToo: true })
      const { sessionId } = session
      const { result, replayed } = await idempotency.once({
        scope: ['POST /sessions/close', sessionId],
        sessionId,
        key: idempotencyKey,
        input: { scope },
        keptFor: settings.idempotencyRetention,
        run: (operation) => closeOnce(sessionId, scope, operation),
      })
      return { content: result, replayed }
    },

    async reportPage({ credentials, pageContext, idempotencyKey }) {
      const { session, installation } = await observations.authorize(credentials, 'pageContext')
      const { sessionId } = session
      const keep = () => observations.keepPage(sessionId, installation, pageContext, new Date(now()))
      if (idempotencyKey === undefined) {
        await keep()
        return { replayed: false }
      }
      const { replayed } = await idempotency.once({
        scope: ['POST /context/page', sessionId],
        sessionId,
        key: idempotencyKey,
        input: pageContext,
        keptFor: settings.idempotencyRetention,
        run: () => keep().then(() => true),
      })
      return { replayed }
    },

    async revoke(sessionId, workspaceId) {
      await find(sessionId, workspaceId)
      await wakeups.changing([sessionId], () => store.end(sessionId, 'revoked'))
      return find(sessionId)
    },

    ...bans,
  }
}
