import { randomBytes } from 'node:crypto'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { byKey } from '../../platform/concurrency/batcher.ts'
import type { Bus } from '../bus.ts'
import { ServiceError } from '../errors.ts'
import { field, line, validate } from '../rules.ts'
import { createLiveCache } from '../wakeups/live-cache.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { Caller, ConsoleCallers } from '../workspaces/access.ts'
import { operatorScopes, type WorkspaceSessions } from '../workspaces/workspace-sessions.ts'
import type { ConsoleSessionStore } from './console-session-store.ts'
import { type ConsoleSession, linkLifetimeMs, type SignedInOperator, secretId, sessionLifetimeMs } from './model.ts'

export type SignInCredential = { linkSecret: string } | { workspaceSession: string }

export type NewSession = Omit<ConsoleSession, 'id' | 'createdAt'>

export interface SignedIn {
  secret: string
  session: ConsoleSession
}

export interface ConsoleSessions extends ConsoleCallers {
  /**
   * Creates a link that signs in one operator. Errors: `NotFound` for an unknown workspace,
   * `PermissionDenied` for scopes that the caller lacks, `ValidationFailed`.
   */
  createLink(
    caller: Caller,
    link: { workspaceId: string; operator?: string | undefined; scopes: string[] },
  ): Promise<{ secret: string; expiresAt: Date }>
  /**
   * Creates a session with a new secret, and ends the replaced session. Errors: `Unauthenticated`
   * for an invalid credential, `ValidationFailed`.
   */
  signIn(credential: SignInCredential, displayName: string, replacedSecret: string): Promise<SignedIn>
  /**
   * Creates a session with a new secret, and ends the replaced session. Errors: `Unauthenticated` if
   * the workspace does not exist.
   */
  begin(session: NewSession, replacedId: string | undefined): Promise<SignedIn>
  /** Returns the session of a secret. Errors: `Unauthenticated` if it has ended. */
  find(secret: string): Promise<ConsoleSession>
  /** Returns the operators of a workspace who are signed in, in alphabetical order of their names. */
  operatorsIn(workspaceId: string): Promise<SignedInOperator[]>
  /** Ends a session on all cores. */
  signOut(secret: string): Promise<void>
}

const secretBytes = 32
const secretForm = /^[\w-]{43}$/
const maxCached = 10_000
const maxOperators = 200

export function createConsoleSessions(dependencies: {
  store: ConsoleSessionStore
  hasWorkspace: (workspaceId: string) => Promise<boolean>
  workspaceSessions: WorkspaceSessions
  wakeups: Pick<Wakeups, 'stateChanged' | 'isCurrent'>
  bus: Bus
  now: () => number
}): ConsoleSessions {
  const { store, hasWorkspace, workspaceSessions, wakeups, bus, now } = dependencies
  const sessions = createLiveCache({
    bus,
    isCurrent: wakeups.isCurrent,
    maxEntries: maxCached,
    loadMany: async (ids) => byKey(await store.findSessions(ids), ({ id }) => id),
  })

  async function activeSession(id: string): Promise<ConsoleSession> {
    const session = await sessions.get(id)
    if (!session || session.expiresAt.getTime() <= now()) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    return session
  }

  async function find(secret: string): Promise<ConsoleSession> {
    if (!secretForm.test(secret)) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    return activeSession(secretId(secret))
  }

  async function ownerOf(credential: SignInCredential) {
    if ('linkSecret' in credential) {
      const link = await store.takeLink(secretId(credential.linkSecret), new Date(now()))
      if (!link) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
      const { workspaceId, operator, scopes, sessionEndsBy } = link
      return { workspaceId, operator, scopes, endsBy: sessionEndsBy?.getTime() }
    }
    const { workspaceId, subject, scopes, expiresAt } = await workspaceSessions.verify(credential.workspaceSession)
    return { workspaceId, operator: subject, scopes: [...scopes], endsBy: expiresAt }
  }

  async function end(id: string): Promise<void> {
    await store.removeSession(id)
    await wakeups.stateChanged(id)
  }

  async function begin(given: NewSession, replacedId: string | undefined): Promise<SignedIn> {
    if (!(await hasWorkspace(given.workspaceId))) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    const secret = newSecret()
    const session: ConsoleSession = { ...given, id: secretId(secret), createdAt: new Date(now()) }
    await store.insertSession(session)
    if (replacedId !== undefined) await end(replacedId)
    return { secret, session }
  }

  return {
    async createLink(caller, { workspaceId, operator = caller.subject, scopes }) {
      validate(field('/operator', operator, line(1, 128)))
      const granted = scopes.length > 0 ? scopes : [...caller.scopes].filter((scope) => operatorScopes.has(scope))
      if (!granted.every((scope) => operatorScopes.has(scope) && caller.scopes.has(scope)))
        throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      if (!(await hasWorkspace(workspaceId))) throw new ServiceError(ErrorCode.NOT_FOUND)
      const secret = newSecret()
      const expiresAt = new Date(Math.min(now() + linkLifetimeMs, caller.expiresAt))
      const isLimited = Number.isFinite(caller.expiresAt)
      await store.insertLink({
        id: secretId(secret),
        workspaceId,
        operator,
        scopes: granted,
        expiresAt,
        ...(isLimited && { sessionEndsBy: new Date(caller.expiresAt) }),
      })
      return { secret, expiresAt }
    },

    async signIn(credential, displayName, replacedSecret) {
      // Check the name before the link is used, because a link works only once.
      validate(field('/displayName', displayName.trim(), line(1, 128)))
      const { workspaceId, operator, scopes, endsBy = Number.POSITIVE_INFINITY } = await ownerOf(credential)
      const expiresAt = new Date(Math.min(now() + sessionLifetimeMs, endsBy))
      return begin(
        { workspaceId, operator, displayName: displayName.trim(), scopes, expiresAt },
        replacedSecret ? secretId(replacedSecret) : undefined,
      )
    },

    begin,

    find,

    async operatorsIn(workspaceId) {
      const operators = await store.operatorsIn(workspaceId, new Date(now()))
      return operators.sort((one, other) => one.displayName.localeCompare(other.displayName)).slice(0, maxOperators)
    },

    signOut: (secret) => end(secretId(secret)),

    async callerOf(secret) {
      const { id, operator, workspaceId, scopes, expiresAt } = await find(secret)
      return {
        tokenId: id,
        subject: operator,
        workspaceId,
        scopes: new Set(scopes),
        expiresAt: expiresAt.getTime(),
        async requireActive() {
          const current = await activeSession(id)
          if (!scopes.every((scope) => current.scopes.includes(scope)))
            throw new ServiceError(ErrorCode.UNAUTHENTICATED)
        },
      }
    },
  }
}

const newSecret = () => randomBytes(secretBytes).toString('base64url')
