import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { Directory } from './directory.ts'
import { ServiceError } from './errors.ts'
import type { Grants } from './grants.ts'
import type { Idempotency } from './idempotency.ts'
import { newEpoch, newId } from './ids.ts'
import { type Keyring, keyedHash } from './keyring.ts'
import { minimisePageContext, type PageContext, pageContextIssues } from './page-context.ts'
import { parseEventId, type ReplayWindow } from './replay-window.ts'
import { field, locale, text, validate } from './rules.ts'
import type { Conversation, ConversationStore } from './store/conversations.ts'
import type { EventStore } from './store/events.ts'
import type { Session, SessionStore } from './store/sessions.ts'
import type { VisitorAccess, VisitorCredentials } from './visitor-access.ts'
import type { Wakeups } from './wakeups.ts'
import type { Workspaces } from './workspaces.ts'

/** What a browser is given (specification, section 2.2). */
export interface SessionContent {
  sessionId: string
  conversationId: string
  accessGrant: string
  expiresAt: Date
  renewAfter: Date
  renewalToken: string
  replay: Replay
  continuityState: 'new' | 'continued' | 'reset'
  identityState: 'anonymous' | 'verified'
}

interface Replay {
  state: 'ready' | 'reset_required'
  epoch: string
  lastSequence: number
  oldestSequence: number
}

/** What a session content is made from again at a repeat: everything but its credentials. */
interface Issued {
  sessionId: string
  conversationId: string
  connectionId: string
  origin: string
  generation: number
  /** Seconds since 1970. */
  issuedAt: number
  expiresAt: number
  replay: Replay
  continuityState: SessionContent['continuityState']
}

export interface Repeatable<T> {
  content: T
  replayed: boolean
}

export interface SessionSettings {
  /** Seconds. */
  grantLifetime: number
  sessionLifetime: number
  /** How long a repeated creation gets the same credentials again, in seconds. */
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
  renew(request: {
    credentials: VisitorCredentials
    sessionId: string
    renewalToken: string
    lastSeenEventId?: string
    idempotencyKey: string
  }): Promise<Repeatable<SessionContent>>
  close(request: {
    credentials: VisitorCredentials
    scope: 'panel' | 'continuity'
    idempotencyKey: string
  }): Promise<Repeatable<{ sessionId: string; state: 'active' | 'closed' }>>
  /** Errors of these four: `NotFound`, also for another workspace's session. */
  find(sessionId: string, workspaceId?: string): Promise<Session>
  revoke(sessionId: string, workspaceId?: string): Promise<Session>
  ban(sessionId: string, reason: string, workspaceId?: string): Promise<Session>
  unban(sessionId: string, workspaceId?: string): Promise<Session>
}

export interface SessionsDependencies {
  store: SessionStore
  conversations: ConversationStore
  events: Pick<EventStore, 'heads'>
  replayWindow: ReplayWindow
  workspaces: Pick<Workspaces, 'installationFor'>
  directory: Directory
  access: VisitorAccess
  grants: Grants
  keyring: Keyring
  idempotency: Idempotency
  wakeups: Pick<Wakeups, 'stateChanged'>
  settings: SessionSettings
  now: () => number
}

/** Visitor sessions: their start, their renewal, their end (contract, sections 2 and 3). */
export function createSessions(dependencies: SessionsDependencies): Sessions {
  const {
    store,
    conversations,
    events,
    replayWindow,
    workspaces,
    directory,
    access,
    grants,
    keyring,
    idempotency,
    wakeups,
    settings,
    now,
  } = dependencies

  function visitorIdFor(connectionId: string, clientInstanceId: string) {
    const { key } = keyring.all('visitor-id').at(-1)!
    return `vis_${keyedHash(key, connectionId, clientInstanceId).toString('hex').slice(0, 32)}`
  }

  async function start(request: Omit<NewSession, 'idempotencyKey'>): Promise<Issued> {
    const installation = await workspaces.installationFor(request.publicSiteKey, request.origin)
    const { connectionId, workspaceId, publicSiteKey } = installation
    const visitorId = visitorIdFor(connectionId, request.clientInstanceId)
    if (await store.isBanned(visitorId)) throw new ServiceError(ErrorCode.VISITOR_BANNED)

    const issuedAt = Math.floor(now() / 1000)
    const endsAt = issuedAt + settings.sessionLifetime
    const expiresAt = Math.min(issuedAt + settings.grantLifetime, endsAt)
    const createdAt = new Date(now())
    const conversation: Conversation = {
      conversationId: newId('cnv'),
      workspaceId,
      connectionId,
      epoch: newEpoch(),
      createdAt,
    }
    const session: Session = {
      sessionId: newId('ses'),
      workspaceId,
      connectionId,
      publicSiteKey,
      origin: request.origin,
      conversationId: conversation.conversationId,
      visitorId,
      clientInstanceId: request.clientInstanceId,
      ...(request.locale === undefined ? {} : { locale: request.locale }),
      ...(request.pageContext === undefined ? {} : { pageContext: minimisePageContext(request.pageContext) }),
      status: 'active',
      createdAt,
      grantExpiresAt: new Date(expiresAt * 1000),
      endsAt: new Date(endsAt * 1000),
      renewal: { generation: 0, previousUntil: createdAt },
    }
    await Promise.all([conversations.insert(conversation), store.insert(session)])
    // A ban that came between the look and the insert did not find this session.
    if (await store.isBanned(visitorId)) {
      await store.end(session.sessionId, 'banned')
      throw new ServiceError(ErrorCode.VISITOR_BANNED)
    }
    const { sessionId, conversationId, origin } = session
    const replay: Replay = { state: 'ready', epoch: conversation.epoch, lastSequence: 0, oldestSequence: 0 }
    return {
      sessionId,
      conversationId,
      connectionId,
      origin,
      generation: 0,
      issuedAt,
      expiresAt,
      replay,
      continuityState: 'new',
    }
  }

  /** The credentials are signed and derived again, so that a repeat gets the very same ones and none is stored. */
  async function contentOf(issued: Issued): Promise<SessionContent> {
    const {
      sessionId,
      conversationId,
      connectionId,
      origin,
      generation,
      issuedAt,
      expiresAt,
      replay,
      continuityState,
    } = issued
    return {
      sessionId,
      conversationId,
      accessGrant: await grants.sign({ sid: sessionId, con: connectionId, org: origin, iat: issuedAt, exp: expiresAt }),
      expiresAt: new Date(expiresAt * 1000),
      renewAfter: new Date((issuedAt + Math.floor(((expiresAt - issuedAt) * 2) / 3)) * 1000),
      renewalToken: grants.renewalToken(sessionId, generation),
      replay,
      continuityState,
      identityState: 'anonymous',
    }
  }

  /**
   * Rotates the renewal token. The one before stays good until its grant ends and leads to the current one, so that the
   * tabs of a duplicated session all end up with the same.
   */
  async function rotate(
    session: Session,
    renewalToken: string,
  ): Promise<{ generation: number; issuedAt: number; expiresAt: number }> {
    const { sessionId } = session
    const current = await store.find([sessionId]).then(([found]) => found)
    if (!current) throw new ServiceError(ErrorCode.GRANT_INVALID)
    const { generation, previousUntil } = current.renewal
    const issuedAt = Math.floor(now() / 1000)
    const expiresAt = Math.min(issuedAt + settings.grantLifetime, current.endsAt.getTime() / 1000)
    const grantExpiresAt = new Date(expiresAt * 1000)

    if (grants.isRenewalToken(renewalToken, sessionId, generation)) {
      if (await store.renew(sessionId, generation, { grantExpiresAt, previousUntil: current.grantExpiresAt })) {
        return { generation: generation + 1, issuedAt, expiresAt }
      }
      return rotate(session, renewalToken)
    }
    const isPrevious = generation > 0 && grants.isRenewalToken(renewalToken, sessionId, generation - 1)
    if (!isPrevious || previousUntil.getTime() <= now()) throw new ServiceError(ErrorCode.GRANT_INVALID)
    if (await store.extend(sessionId, generation, grantExpiresAt)) return { generation, issuedAt, expiresAt }
    return rotate(session, renewalToken)
  }

  async function replayOf(conversationId: string, lastSeenEventId: string | undefined): Promise<Replay> {
    const [[conversation], heads, oldestSequence] = await Promise.all([
      conversations.find([conversationId]),
      events.heads([conversationId]),
      replayWindow.oldest(conversationId),
    ])
    const epoch = conversation?.epoch ?? ''
    const lastSequence = heads.get(conversationId) ?? 0
    const start = lastSeenEventId === undefined ? {} : { lastEventId: lastSeenEventId }
    const { state } = await replayWindow.judge(conversationId, { epoch, head: lastSequence, start })
    return { state, epoch, lastSequence, oldestSequence }
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
      validate(
        field('/clientInstanceId', request.clientInstanceId, text(1, 128)),
        field('/locale', request.locale, locale),
        ...pageContextIssues('/pageContext', request.pageContext, settings.pageContextMaxBytes),
      )
      const { origin, ...input } = request
      const { result, replayed } = await idempotency.once({
        scope: ['POST /sessions', request.publicSiteKey, origin],
        key: idempotencyKey,
        input,
        keptFor: settings.creationRepeat,
        run: () => start(request),
      })
      return { content: await contentOf(result), replayed }
    },

    async renew({ credentials, sessionId, renewalToken, lastSeenEventId, idempotencyKey }) {
      const { session } = await access.authorize(credentials)
      if (session.sessionId !== sessionId) throw new ServiceError(ErrorCode.GRANT_INVALID)
      validate(
        field('/renewalToken', renewalToken, text(1, 256)),
        field('/lastSeenEventId', lastSeenEventId, text(1, 256)),
      )
      const { result, replayed } = await idempotency.once({
        scope: ['POST /sessions/renew', sessionId],
        key: idempotencyKey,
        input: { sessionId, renewalToken, lastSeenEventId },
        keptFor: settings.idempotencyRetention,
        run: async (): Promise<Issued> => {
          const { conversationId, connectionId, origin } = session
          const renewed = await rotate(session, renewalToken)
          const replay = await replayOf(conversationId, lastSeenEventId)
          const known = lastSeenEventId !== undefined && parseEventId(lastSeenEventId) !== undefined
          const continuityState = known && replay.state === 'reset_required' ? 'reset' : 'continued'
          return { sessionId, conversationId, connectionId, origin, ...renewed, replay, continuityState }
        },
      })
      directory.sessions.invalidate(sessionId)
      return { content: await contentOf(result), replayed }
    },

    async close({ credentials, scope, idempotencyKey }) {
      const { session } = await access.authorize(credentials)
      const { sessionId } = session
      const { result, replayed } = await idempotency.once({
        scope: ['POST /sessions/close', sessionId],
        key: idempotencyKey,
        input: { scope },
        keptFor: settings.idempotencyRetention,
        run: async () => {
          if (scope === 'continuity') await store.end(sessionId, 'closed')
          return { sessionId, state: scope === 'continuity' ? ('closed' as const) : ('active' as const) }
        },
      })
      if (result.state === 'closed') await wakeups.stateChanged(sessionId)
      return { content: result, replayed }
    },

    find,

    async revoke(sessionId, workspaceId) {
      await find(sessionId, workspaceId)
      await store.end(sessionId, 'revoked')
      await wakeups.stateChanged(sessionId)
      return find(sessionId)
    },

    async ban(sessionId, reason, workspaceId) {
      const { visitorId } = await find(sessionId, workspaceId)
      validate(field('/reason', reason, text(0, 512)))
      await store.ban(visitorId, { at: new Date(now()), reason })
      await wakeups.stateChanged(...(await store.endAllOf(visitorId, 'banned')), sessionId)
      return find(sessionId)
    },

    async unban(sessionId, workspaceId) {
      const session = await find(sessionId, workspaceId)
      await store.unban(session.visitorId)
      return session
    },
  }
}
