import { byKey } from '../../platform/concurrency/batcher.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { withId } from '../mongodb/with-id.ts'
import { field, line, validate } from '../rules.ts'
import { liveCacheOf } from '../wakeups/live-cache.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { type Caller, tokenIdOf } from '../workspaces/access.ts'
import { requireLiveToken, useToken } from '../workspaces/tokens.ts'
import { operatorScopes, workspaceSessionsOf } from '../workspaces/workspace-sessions.ts'
import { findWorkspace, workspaceWith } from '../workspaces/workspaces.ts'
import {
  accountSessionLifetimeMs,
  type ConsoleSession,
  linkLifetimeMs,
  newSecret,
  type SignedInOperator,
  type SignInAttempt,
  type SignInLink,
  secretId,
  sessionLifetimeMs,
} from './model.ts'
import {
  activeOwners,
  addMember,
  findMember,
  isActive,
  isLinkUsable,
  isNewMember,
  listMembers,
  scopesOfRole,
} from './teams.ts'

export type SignInCredential = { linkSecret: string } | { workspaceSession: string }

export interface SignedIn {
  secret: string
  session: ConsoleSession
}

const secretForm = /^[\w-]{43}$/
const maxCached = 10_000
const maxOperators = 200

const refused = () => new ServiceError('Unauthenticated')

export const consoleSessionsOf = perCore((core) =>
  liveCacheOf<ConsoleSession>(core, {
    maxEntries: maxCached,
    loadMany: async (ids) =>
      byKey((await core.db.consoleSessions.find({ _id: { $in: ids } }).toArray()).map(withId), ({ id }) => id),
  }),
)

/** Returns the session. A session of an account gets the account's present name and scopes. */
async function activeSession(core: Core, id: string, isRoutine = false) {
  const session = await consoleSessionsOf(core).get(id, isRoutine)
  if (!session || session.expiresAt.getTime() <= core.now()) throw refused()
  if (session.tokenId) await requireLiveToken(core, session.tokenId, isRoutine)
  if (!session.account) return session
  const member = await findMember(core, session.workspaceId, session.operator, isRoutine)
  if (!member) throw refused()
  return { ...session, displayName: member.name, scopes: member.role ? scopesOfRole[member.role] : session.scopes }
}

/** Returns the session of a secret. Errors: `Unauthenticated` if it has ended. */
export async function findConsoleSession(core: Core, secret: string): Promise<ConsoleSession> {
  if (!secretForm.test(secret)) throw refused()
  return activeSession(core, secretId(secret))
}

/** Returns the link of a secret. Errors: `Unauthenticated` if it is used or expired, or its inviter may not invite. */
export async function findSignInLink(core: Core, secret: string): Promise<SignInLink> {
  const link = await core.db.signInLinks.findOne({ _id: secretId(secret), ...notExpired(core) })
  if (!link || link.newMail !== undefined) throw refused()
  if (link.tokenId) await requireLiveToken(core, link.tokenId)
  if (!isLinkUsable(await listMembers(core, link.workspaceId), link)) throw refused()
  return withId(link)
}

const lifetime = ({ now }: Core, ms: number, endsBy = Number.POSITIVE_INFINITY) =>
  new Date(Math.min(now() + ms, endsBy))

/** Returns the account of a used link. An invitation creates it. */
async function enterAccount(core: Core, { workspaceId, operator, account }: SignInLink, name: string) {
  const { invitedBy, isFirst, role, mail } = account!
  if (!(await workspaceWith(core, workspaceId))) throw refused()
  if (role) await addMember(core, workspaceId, { id: operator, name, role, mail })
  return { workspaceId, operator, method: isFirst ? 'link' : invitedBy ? 'invitation' : 'mail' } as const
}

/** Creates a session of an account. Errors: `Unauthenticated` if the account is not active. */
export async function beginAccountSession(
  core: Core,
  { workspaceId, operator, method }: { workspaceId: string; operator: string; method: ConsoleSession['method'] },
  replacedSecret: string,
): Promise<SignedIn> {
  const member = await findMember(core, workspaceId, operator)
  if (!member?.role) throw refused()
  const { name: displayName, role } = member
  const expiresAt = lifetime(core, accountSessionLifetimeMs)
  const session = { workspaceId, operator, displayName, scopes: scopesOfRole[role], method, expiresAt }
  return beginConsoleSession(core, { ...session, account: true }, replacedIdOf(replacedSecret))
}

/** Ends sessions on all cores. */
export async function endConsoleSessions(core: Core, ...sessions: { id: string }[]) {
  const ids = sessions.map(({ id }) => id)
  await core.db.consoleSessions.deleteMany({ _id: { $in: ids } })
  await wakeupsOf(core).stateChanged(...ids)
}

/** Creates a session, and ends the replaced one. Errors: `Unauthenticated` if the workspace does not exist. */
export async function beginConsoleSession(
  core: Core,
  given: Omit<ConsoleSession, 'id' | 'createdAt'>,
  replacedId: string | undefined,
): Promise<SignedIn> {
  if (!(await workspaceWith(core, given.workspaceId))) throw refused()
  const secret = newSecret()
  const session = { ...given, createdAt: dateOf(core) }
  const id = secretId(secret)
  await core.db.consoleSessions.insertOne({ _id: id, ...session })
  if (replacedId !== undefined) await endConsoleSessions(core, { id: replacedId })
  return { secret, session: { id, ...session } }
}

/** Errors: `NotFound` (workspace), `PermissionDenied` for scopes that the caller lacks, `ValidationFailed`. */
export async function createSignInLink(
  core: Core,
  caller: Caller,
  { workspaceId, operator = caller.subject, scopes }: { workspaceId: string; operator?: string; scopes: string[] },
) {
  validate(field('/operator', operator, line(1, 128)))
  const granted = scopes.length > 0 ? scopes : [...caller.scopes].filter((scope) => operatorScopes.has(scope))
  const isGrantable = granted.every((scope) => operatorScopes.has(scope) && caller.scopes.has(scope))
  // An account invites instead: its removal would not end what the link signs in.
  if (!isGrantable || caller.consoleSession?.account) throw new ServiceError('PermissionDenied')
  await findWorkspace(core, workspaceId)
  const expiresAt = lifetime(core, linkLifetimeMs, caller.expiresAt)
  const { secret } = await addLink(core, {
    workspaceId,
    operator,
    scopes: granted,
    expiresAt,
    tokenId: caller.tokenId,
    sessionEndsBy: lifetime(core, linkLifetimeMs + sessionLifetimeMs, caller.expiresAt),
  })
  return { secret, expiresAt }
}

/** Creates a session, and ends the replaced one. Errors: `Unauthenticated`, `ValidationFailed`. */
export async function signIn(
  core: Core,
  credential: SignInCredential,
  displayName: string,
  replacedSecret: string,
): Promise<SignedIn> {
  const name = displayName.trim()
  const replacedId = replacedIdOf(replacedSecret)
  if ('workspaceSession' in credential) {
    requireName(name)
    const session = await workspaceSessionsOf(core).verify(credential.workspaceSession)
    const { workspaceId, subject: operator, scopes } = session
    const tokenId = tokenIdOf(credential.workspaceSession)
    await useToken(core, { ...session, tokenId })
    const expiresAt = lifetime(core, sessionLifetimeMs, session.expiresAt)
    const given = { workspaceId, operator, displayName: name, scopes: [...scopes], tokenId, expiresAt }
    return beginConsoleSession(core, { ...given, method: 'token' }, replacedId)
  }
  const { linkSecret } = credential
  const { workspaceId, operator, account } = await findSignInLink(core, linkSecret)
  // A valid link is used only for a valid account, but before it is stored: a revoked link creates none.
  const members = await listMembers(core, workspaceId)
  if (!account || isNewMember(members, { id: operator, mail: account.mail })) requireName(name)
  const link = await takeLink(core, linkSecret)
  if (!link) throw refused()
  if (account) return beginAccountSession(core, await enterAccount(core, link, name), replacedSecret)
  const { scopes, tokenId, sessionEndsBy } = link
  const expiresAt = lifetime(core, sessionLifetimeMs, sessionEndsBy?.getTime())
  const given = { workspaceId, operator, displayName: name, scopes, tokenId, expiresAt }
  return beginConsoleSession(core, { ...given, method: 'link' }, replacedId)
}

/** Creates a link for the first owner, whose account it creates if there is none. Errors: `NotFound`. */
export async function createOwnerLink(core: Core, workspaceId: string, newOperator: string) {
  await findWorkspace(core, workspaceId)
  const [owner] = activeOwners(await listMembers(core, workspaceId))
  const expiresAt = lifetime(core, linkLifetimeMs)
  const account = { createdAt: dateOf(core), isFirst: true, role: 'owner' as const }
  const operator = owner?.id ?? newOperator
  const { secret } = await addLink(core, { workspaceId, operator, scopes: [], expiresAt, account })
  return { secret, expiresAt }
}

/** Returns the operators who have an account or are signed in, sorted by name. */
export async function operatorsIn(core: Core, workspaceId: string): Promise<SignedInOperator[]> {
  const members = await listMembers(core, workspaceId)
  const accounts = members.filter(isActive).map(({ id, name }) => ({ displayName: name, operator: id }))
  const sessions = core.db.consoleSessions.aggregate<{ _id: string; operator: string }>([
    { $match: { workspaceId, ...notExpired(core) } },
    { $group: { _id: '$displayName', operator: { $last: '$operator' } } },
  ])
  const signedIn = (await sessions.toArray()).map(({ _id: displayName, operator }) => ({ displayName, operator }))
  const operators = [...accounts, ...signedIn.filter(({ operator }) => members.every(({ id }) => id !== operator))]
  return operators.sort((one, other) => one.displayName.localeCompare(other.displayName)).slice(0, maxOperators)
}

/** Returns the caller with this secret of a session. Errors: `Unauthenticated` if it has ended. */
export async function consoleCaller(core: Core, secret: string): Promise<Caller> {
  const found = await findConsoleSession(core, secret)
  const { id, tokenId, operator, workspaceId, scopes, expiresAt, account = false } = found
  return {
    tokenId: tokenId || id,
    subject: operator,
    workspaceId,
    consoleSession: { id, account },
    scopes: new Set(scopes),
    expiresAt: expiresAt.getTime(),
    async requireActive(isRoutine) {
      const current = await activeSession(core, id, isRoutine)
      if (!scopes.every((scope) => current.scopes.includes(scope))) throw refused()
    },
  }
}

const requireName = (name: string) => validate(field('/displayName', name, line(1, 128)))

export const replacedIdOf = (secret: string) => (secret === '' ? undefined : secretId(secret))

export type ConsoleSessionDocument = { _id: string } & Omit<ConsoleSession, 'id'>
export type SignInLinkDocument = { _id: string } & Omit<SignInLink, 'id'>

export const maxListed = 1_000

export const notExpired = (core: Core) => ({ expiresAt: { $gt: dateOf(core) } })

export async function addLink({ db }: Core, link: Omit<SignInLink, 'id'>) {
  const secret = newSecret()
  const id = secretId(secret)
  await db.signInLinks.insertOne({ _id: id, ...link })
  return { secret, link: { id, ...link } }
}

/** Removes the link with these properties and returns it, unless it expired. Only one of several calls gets it. */
export async function takeLink(core: Core, secret: string, properties: object = {}): Promise<SignInLink | undefined> {
  const wanted = { ...properties, _id: secretId(secret), ...notExpired(core) }
  const found = await core.db.signInLinks.findOneAndDelete(wanted)
  return found ? withId(found) : undefined
}

/** Returns the newest sessions of a workspace that have not expired. */
export async function consoleSessionsIn(core: Core, workspaceId: string, operator?: string): Promise<ConsoleSession[]> {
  const open = { workspaceId, ...notExpired(core), operator }
  return (await core.db.consoleSessions.find(open).sort({ createdAt: -1 }).limit(maxListed).toArray()).map(withId)
}

/** Removes the sign-in that this browser has begun, and returns it. Only one of several calls gets it. */
export const takeAttempt = (core: Core, _id: string, browserId: string): Promise<SignInAttempt | null> =>
  core.db.signInAttempts.findOneAndDelete({ _id, browserId, ...notExpired(core) })
