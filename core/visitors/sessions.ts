import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { ConversationStore } from '../conversations/conversation-store.ts'
import { ServiceError } from '../errors.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import type { IdsKey } from '../keys/ids-key.ts'
import { type Keyring, keyedHash } from '../keys/keyring.ts'
import type { Wakeups } from '../log/wakeups.ts'
import { repairLocale } from '../repairs.ts'
import { field, text, validate } from '../rules.ts'
import type { Directory } from '../workspaces/directory.ts'
import type { Workspaces } from '../workspaces/workspaces.ts'
import { firstGrantOf, idOfOperation, newConversation, newSession, type SessionLifetimes } from './new-session.ts'
import { type PageContext, repairPageContext } from './page-context.ts'
import type { Issued, Repeatable, SessionContent, SessionContents } from './session-content.ts'
import type { Session, SessionStore } from './session-store.ts'
import type { Subjects } from './subjects.ts'
import type { VisitorAccess, VisitorCredentials } from './visitor-access.ts'

export interface SessionSettings extends SessionLifetimes {
  /** Time in seconds during which a repeated creation returns the same credentials. */
  creationRepeat: number
  idempotencyRetention: number
  pageContextMaxBytes: number
}

export interface NewSession {
  publicSiteKey: string
  origin: string
  clientInstanceId: string
  locale?: string
  pageContext?: PageContext
  idempotencyKey: string
}

export interface Sessions {
  create(request: NewSession): Promise<Repeatable<SessionContent>>
  /**
   * `continuity` ends the session. For a verified session it also ends the subject's conversation:
   * the next identification begins a new one. A repeat is accepted with the ended grant. Errors:
   * those of VisitorAccess.authorize and of Idempotency.once.
   */
  close(request: {
    credentials: VisitorCredentials
    scope: 'panel' | 'continuity'
    idempotencyKey: string
  }): Promise<Repeatable<{ sessionId: string; state: 'active' | 'closed' }>>
  /** Stores the visitor's page, repaired. Errors: those of VisitorAccess.authorize. */
  reportPage(request: {
    credentials: VisitorCredentials
    pageContext: PageContext
    idempotencyKey?: string
  }): Promise<{ replayed: boolean }>
  /** Errors of these four: `NotFound`, also for a session of another workspace. */
  find(sessionId: string, workspaceId?: string): Promise<Session>
  revoke(sessionId: string, workspaceId?: string): Promise<Session>
  /** Bans the browser, and for a verified session the subject on the whole connection. */
  ban(sessionId: string, reason: string, workspaceId?: string): Promise<Session>
  unban(sessionId: string, workspaceId?: string): Promise<Session>
  /** Whether the browser or the subject of a verified session is banned. */
  isVisitorBanned(session: Session): Promise<boolean>
}

export interface SessionsDependencies {
  store: SessionStore
  conversations: Pick<ConversationStore, 'insertOnce'>
  contents: SessionContents
  workspaces: Pick<Workspaces, 'installationFor'>
  directory: Pick<Directory, 'connections'>
  subjects: Pick<Subjects, 'forgetConversation'>
  access: VisitorAccess
  keyring: Keyring
  idsKey: IdsKey
  idempotency: Idempotency
  wakeups: Pick<Wakeups, 'stateChanged'>
  settings: SessionSettings
  now: () => number
}

/** Creates, reports on and ends visitor sessions (contract, sections 2 and 3). */
export function createSessions(dependencies: SessionsDependencies): Sessions {
  const { store, conversations, contents, workspaces, directory, subjects, access } = dependencies
  const { keyring, idsKey, idempotency, wakeups, settings, now } = dependencies

  async function visitorIdFor(connectionId: string, clientInstanceId: string) {
    return `vis_${keyedHash(await idsKey(), connectionId, clientInstanceId)
      .toString('hex')
      .slice(0, 32)}`
  }

  /**
   * Creates the session of an operation. All runs of the operation create the same one, even at
   * once.
   */
  async function start(request: Omit<NewSession, 'idempotencyKey'>, operation: string[]): Promise<Issued> {
    const { origin, clientInstanceId } = request
    const locale = repairLocale(request.locale ?? '')
    const pageContext = request.pageContext && repairPageContext(request.pageContext, settings.pageContextMaxBytes)
    const { connectionId, workspaceId, publicSiteKey } = await workspaces.installationFor(request.publicSiteKey, origin)
    const connection = await directory.connections.get(connectionId)
    if (connection?.status !== 'enabled') throw new ServiceError(ErrorCode.CONNECTION_DISABLED)
    const visitorId = await visitorIdFor(connectionId, clientInstanceId)
    if (await store.isBanned(visitorId)) throw new ServiceError(ErrorCode.VISITOR_BANNED)

    const session = newSession(
      {
        sessionId: idOfOperation(keyring, 'ses', ...operation),
        workspaceId,
        connectionId,
        connectionVersion: connection.statusVersion,
        publicSiteKey,
        origin,
        conversationId: idOfOperation(keyring, 'cnv', ...operation),
        visitorId,
        clientInstanceId,
        locale,
        pageContext,
        pageContextAt: pageContext && new Date(now()),
      },
      now(),
      settings,
    )
    const conversation = newConversation(session, now())
    const inserted = await Promise.all([conversations.insertOnce(conversation), store.insertOnce(session)])
    // A ban between the check and the insert did not end this session.
    if (await store.isBanned(visitorId)) {
      await store.end(session.sessionId, 'banned')
      throw new ServiceError(ErrorCode.VISITOR_BANNED)
    }
    if (inserted.includes(false)) {
      const first = await find(session.sessionId)
      return contents.issue(first, firstGrantOf(first), { state: 'new' })
    }
    const replay = { state: 'ready' as const, epoch: conversation.epoch, lastSequence: 0, oldestSequence: 0 }
    return contents.issue(session, firstGrantOf(session), { state: 'new', replay })
  }

  async function closeOnce(sessionId: string, scope: 'panel' | 'continuity', operation: string) {
    const isDone = async () => (await find(sessionId)).closedBy === operation
    if (!(await isDone())) {
      const { identity } = await access.live(sessionId)
      if (scope === 'panel') return { sessionId, state: 'active' as const }
      // First, so that no session continues the conversation after this one is closed.
      if (identity) await subjects.forgetConversation(identity.subjectId)
      if (!(await store.end(sessionId, 'closed', operation)) && !(await isDone())) {
        await access.live(sessionId)
        throw new ServiceError(ErrorCode.SESSION_CLOSED)
      }
    }
    return { sessionId, state: 'closed' as const }
  }

  async function find(sessionId: string, workspaceId?: string): Promise<Session> {
    const [session] = await store.find([sessionId])
    if (!session || (workspaceId !== undefined && session.workspaceId !== workspaceId))
      throw new ServiceError(ErrorCode.NOT_FOUND)
    return session
  }

  return {
    async create({ idempotencyKey, ...request }) {
      await workspaces.installationFor(request.publicSiteKey, request.origin)
      validate(field('/clientInstanceId', request.clientInstanceId, text(1, 128)))
      const { origin, ...input } = request
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
      if (result.state === 'closed') await wakeups.stateChanged(sessionId)
      return { content: result, replayed }
    },

    async reportPage({ credentials, pageContext, idempotencyKey }) {
      const { session } = await access.authorize(credentials)
      const { sessionId } = session
      const kept = repairPageContext(pageContext, settings.pageContextMaxBytes)
      const keep = async () => kept && store.setPageContext(sessionId, kept, new Date(now()))
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

    find,

    async revoke(sessionId, workspaceId) {
      await find(sessionId, workspaceId)
      await store.end(sessionId, 'revoked')
      await wakeups.stateChanged(sessionId)
      return find(sessionId)
    },

    async ban(sessionId, reason, workspaceId) {
      const visitor = visitorOf(await find(sessionId, workspaceId))
      validate(field('/reason', reason, text(0, 512)))
      const at = new Date(now())
      for (const id of Object.values(visitor)) await store.ban(id, { at, reason })
      await wakeups.stateChanged(...(await store.endAllOf(visitor, 'banned', at)), sessionId)
      return find(sessionId)
    },

    async unban(sessionId, workspaceId) {
      const session = await find(sessionId, workspaceId)
      for (const id of Object.values(visitorOf(session))) await store.unban(id)
      return session
    },

    isVisitorBanned: (session) => store.isBanned(...Object.values(visitorOf(session))),
  }
}

/** The browser and the subject that a ban on a session affects. */
function visitorOf({ visitorId, identity }: Session): { visitorId: string; subjectId?: string } {
  return { visitorId, ...(identity && { subjectId: identity.subjectId }) }
}
