import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { byKey } from '../../platform/concurrency/batcher.ts'
import type { Bus } from '../bus.ts'
import { ServiceError } from '../errors.ts'
import { field, line, validate } from '../rules.ts'
import { createLiveCache } from '../wakeups/live-cache.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import { type Caller, type ConsoleCallers, tokenIdOf } from '../workspaces/access.ts'
import type { Tokens } from '../workspaces/service.ts'
import { operatorScopes, type WorkspaceSessions } from '../workspaces/workspace-sessions.ts'
import type { ConsoleSessionStore } from './console-session-store.ts'
import {
  accountSessionLifetimeMs,
  type ConsoleSession,
  linkLifetimeMs,
  newSecret,
  type SignedInOperator,
  type SignInLink,
  secretId,
  sessionLifetimeMs,
} from './model.ts'
import { scopesOfRole } from './roles.ts'
import { activeOwners, isActive, type Teams } from './teams.ts'

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
   * Creates a link that signs in the first owner. It creates the account if there is no owner. Errors:
   * `NotFound` for an unknown workspace.
   */
  createOwnerLink(workspaceId: string, newOperator: string): Promise<{ secret: string; expiresAt: Date }>
  /** Returns a link that is neither used nor expired. Errors: `Unauthenticated`. */
  findLink(secret: string): Promise<SignInLink>
  /**
   * Creates a session with a new secret, and ends the replaced session. Errors: `Unauthenticated`
   * for an invalid credential, `ValidationFailed`.
   */
  signIn(credential: SignInCredential, displayName: string, replacedSecret: string): Promise<SignedIn>
  /** Creates a session of an active account. Errors: `Unauthenticated`. */
  beginOf(
    account: { workspaceId: string; operator: string; method: ConsoleSession['method'] },
    replacedSecret: string,
  ): Promise<SignedIn>
  /**
   * Creates a session with a new secret, and ends the replaced session. Errors: `Unauthenticated` if
   * the workspace does not exist.
   */
  begin(session: NewSession, replacedId: string | undefined): Promise<SignedIn>
  /** Returns the session of a secret. Errors: `Unauthenticated` if it has ended. */
  find(secret: string): Promise<ConsoleSession>
  /** Returns the operators of a workspace who have an account or are signed in, in alphabetical order of their names. */
  operatorsIn(workspaceId: string): Promise<SignedInOperator[]>
  /** Ends a session on all cores. */
  signOut(secret: string): Promise<void>
}

const secretForm = /^[\w-]{43}$/
const maxCached = 10_000
const maxOperators = 200

export function createConsoleSessions(dependencies: {
  store: ConsoleSessionStore
  teams: Teams
  hasWorkspace: (workspaceId: string) => Promise<boolean>
  workspaceSessions: WorkspaceSessions
  tokens: Pick<Tokens, 'requireLive' | 'use'>
  wakeups: Pick<Wakeups, 'stateChanged' | 'isCurrent'>
  bus: Bus
  now: () => number
}): ConsoleSessions {
  const { store, teams, hasWorkspace, workspaceSessions, tokens, wakeups, bus, now } = dependencies
  const sessions = createLiveCache({
    bus,
    isCurrent: wakeups.isCurrent,
    maxEntries: maxCached,
    loadMany: async (ids) => byKey(await store.findSessions(ids), ({ id }) => id),
  })

  async function activeSession(id: string, isRoutine = false): Promise<ConsoleSession> {
    const session = await sessions.get(id, isRoutine)
    if (!session || session.expiresAt.getTime() <= now()) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    if (session.tokenId) await tokens.requireLive(session.tokenId, isRoutine)
    return session.account ? ofAccount(session, isRoutine) : session
  }

  /** Returns the session with the present name and scopes of its account. */
  async function ofAccount(session: ConsoleSession, isRoutine: boolean): Promise<ConsoleSession> {
    const member = await teams.find(session.workspaceId, session.operator, isRoutine)
    if (!member) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    return { ...session, displayName: member.name, scopes: member.role ? scopesOfRole[member.role] : session.scopes }
  }

  async function find(secret: string): Promise<ConsoleSession> {
    if (!secretForm.test(secret)) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    return activeSession(secretId(secret))
  }

  async function findLink(secret: string): Promise<SignInLink> {
    const link = await store.findLink(secretId(secret), new Date(now()))
    if (!link || link.newMail !== undefined) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    if (link.tokenId) await tokens.requireLive(link.tokenId)
    return link
  }

  async function takeLink(secret: string): Promise<SignInLink> {
    const link = await store.takeLink(secretId(secret), new Date(now()))
    if (!link) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    return link
  }

  const lifetime = (ms: number, endsBy = Number.POSITIVE_INFINITY) => new Date(Math.min(now() + ms, endsBy))

  /** Signs in the account of a link. The name is checked before the link is used. */
  async function enterAccount(secret: string, { workspaceId, operator }: SignInLink, displayName: string) {
    if (!(await teams.find(workspaceId, operator))) requireName(displayName)
    const link = await takeLink(secret)
    if (!(await hasWorkspace(workspaceId))) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    await teams.enter(link, displayName)
    const { invitedBy, isFirst } = link.account!
    return { workspaceId, operator, method: isFirst ? 'link' : invitedBy ? 'invitation' : 'mail' } as const
  }

  async function beginOf(
    { workspaceId, operator, method }: Parameters<ConsoleSessions['beginOf']>[0],
    replacedSecret: string,
  ): Promise<SignedIn> {
    const member = await teams.find(workspaceId, operator)
    if (!member?.role) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
    const { name: displayName, role } = member
    const expiresAt = lifetime(accountSessionLifetimeMs)
    const session = { workspaceId, operator, displayName, scopes: scopesOfRole[role], method, expiresAt }
    return begin({ ...session, account: true }, replacedIdOf(replacedSecret))
  }

  async function end(id: string): Promise<void> {
    await store.removeSessions([id])
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
      const expiresAt = lifetime(linkLifetimeMs, caller.expiresAt)
      const isLimited = Number.isFinite(caller.expiresAt)
      const { secret } = await store.addLink({
        workspaceId,
        operator,
        scopes: granted,
        expiresAt,
        tokenId: caller.tokenId,
        ...(isLimited && { sessionEndsBy: new Date(caller.expiresAt) }),
      })
      return { secret, expiresAt }
    },

    async signIn(credential, displayName, replacedSecret) {
      const name = displayName.trim()
      const replacedId = replacedIdOf(replacedSecret)
      if ('workspaceSession' in credential) {
        requireName(name)
        const session = await workspaceSessions.verify(credential.workspaceSession)
        const { workspaceId, subject: operator, scopes } = session
        const tokenId = tokenIdOf(credential.workspaceSession)
        await tokens.use({ tokenId, subject: operator, workspaceId, expiresAt: session.expiresAt })
        const expiresAt = lifetime(sessionLifetimeMs, session.expiresAt)
        const given = { workspaceId, operator, displayName: name, scopes: [...scopes], tokenId, expiresAt }
        return begin({ ...given, method: 'token' }, replacedId)
      }
      const found = await findLink(credential.linkSecret)
      if (found.account) return beginOf(await enterAccount(credential.linkSecret, found, name), replacedSecret)
      requireName(name)
      const { workspaceId, operator, scopes, tokenId, sessionEndsBy } = await takeLink(credential.linkSecret)
      const expiresAt = lifetime(sessionLifetimeMs, sessionEndsBy?.getTime())
      return begin({ workspaceId, operator, displayName: name, scopes, tokenId, expiresAt, method: 'link' }, replacedId)
    },

    findLink,

    begin,

    beginOf,

    async createOwnerLink(workspaceId, newOperator) {
      if (!(await hasWorkspace(workspaceId))) throw new ServiceError(ErrorCode.NOT_FOUND)
      const [owner] = activeOwners(await teams.list(workspaceId))
      const expiresAt = lifetime(linkLifetimeMs)
      const account = { createdAt: new Date(now()), isFirst: true, role: 'owner' as const }
      const operator = owner?.id ?? newOperator
      const { secret } = await store.addLink({ workspaceId, operator, scopes: [], expiresAt, account })
      return { secret, expiresAt }
    },

    find,

    async operatorsIn(workspaceId) {
      const members = await teams.list(workspaceId)
      const accounts = members.filter(isActive).map(({ id, name }) => ({ displayName: name, operator: id }))
      const signedIn = await store.operatorsIn(workspaceId, new Date(now()))
      const operators = [...accounts, ...signedIn.filter(({ operator }) => members.every(({ id }) => id !== operator))]
      return operators.sort((one, other) => one.displayName.localeCompare(other.displayName)).slice(0, maxOperators)
    },

    signOut: (secret) => end(secretId(secret)),

    async callerOf(secret) {
      const { id, tokenId, operator, workspaceId, scopes, expiresAt, account = false } = await find(secret)
      return {
        tokenId: tokenId || id,
        subject: operator,
        workspaceId,
        consoleSession: { id, account },
        scopes: new Set(scopes),
        expiresAt: expiresAt.getTime(),
        async requireActive(isRoutine) {
          const current = await activeSession(id, isRoutine)
          if (!scopes.every((scope) => current.scopes.includes(scope)))
            throw new ServiceError(ErrorCode.UNAUTHENTICATED)
        },
      }
    },
  }
}

const requireName = (name: string) => validate(field('/displayName', name, line(1, 128)))

const replacedIdOf = (secret: string) => (secret === '' ? undefined : secretId(secret))
