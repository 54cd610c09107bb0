import type { Collection } from 'mongodb'
import { createLeases, type Lease } from '../mongodb/leases.ts'
import {
  type ConsoleSession,
  newSecret,
  type SignedInOperator,
  type SignInAttempt,
  type SignInLink,
  secretId,
} from './model.ts'

export type ConsoleSessionDocument = { _id: string } & Omit<ConsoleSession, 'id'>
export type SignInLinkDocument = { _id: string } & Omit<SignInLink, 'id'>

export type SignInAttemptDocument = { _id: string } & Omit<SignInAttempt, 'id'>

const maxListed = 1_000

export interface ConsoleSessionStore {
  /** Creates a link with a new secret. */
  addLink(link: Omit<SignInLink, 'id'>): Promise<{ secret: string; link: SignInLink }>
  /** Returns the link, unless it is used or expired. */
  findLink(id: string, now: Date): Promise<SignInLink | undefined>
  /** Returns the links of a workspace that sign in accounts, newest first. */
  accountLinks(workspaceId: string, now: Date): Promise<(SignInLink & Required<Pick<SignInLink, 'account'>>)[]>
  /** Counts the links of an account that set a mail address. */
  newMailLinks(workspaceId: string, operator: string, now: Date): Promise<number>
  removeLinks(workspaceId: string, ids: string[]): Promise<void>
  /** Removes the links of an account, and those that its operator has made. */
  removeLinksOf(workspaceId: string, operator: string): Promise<void>
  /**
   * Removes the link and returns it. Of several concurrent calls, only one gets the link. Returns
   * undefined for an unknown, used or expired link.
   */
  takeLink(id: string, now: Date): Promise<SignInLink | undefined>
  insertSession(session: ConsoleSession): Promise<void>
  findSessions(ids: string[]): Promise<ConsoleSession[]>
  /** Returns the newest sessions of a workspace that have not expired. */
  sessionsIn(workspaceId: string, now: Date, operator?: string): Promise<ConsoleSession[]>
  /** Returns the operators in the sessions of a workspace that have not expired, each name once. */
  operatorsIn(workspaceId: string, now: Date): Promise<SignedInOperator[]>
  removeSessions(ids: string[]): Promise<void>
  /** Leases a session whose claims must be read again, so that only one core reads them. */
  claimRecheck(now: Date, until: Date): Promise<{ lease: Lease; session: ConsoleSession } | undefined>
  /** Changes a session. Throws `LeaseLost` if another core reads its claims. */
  updateSession(lease: Lease, change: Pick<ConsoleSession, 'displayName' | 'scopes' | 'provider'>): Promise<void>
  /** Sets the time of the next check. */
  postponeRecheck(lease: Lease, recheckAt: Date): Promise<void>
  /** Removes a session, unless another core reads its claims. */
  endSession(lease: Lease): Promise<void>
  insertAttempt(attempt: SignInAttempt): Promise<void>
  /**
   * Removes the sign-in that this browser has begun, and returns it. Of several concurrent calls,
   * only one gets the sign-in.
   */
  takeAttempt(id: string, browserId: string, now: Date): Promise<SignInAttempt | undefined>
}

export function createConsoleSessionStore({
  consoleSessions,
  signInLinks,
  signInAttempts,
}: {
  consoleSessions: Collection<ConsoleSessionDocument>
  signInLinks: Collection<SignInLinkDocument>
  signInAttempts: Collection<SignInAttemptDocument>
}): ConsoleSessionStore {
  const leases = createLeases(consoleSessions, { until: 'provider.recheckAt', token: 'provider.recheckToken' })

  return {
    async addLink(link) {
      const secret = newSecret()
      const id = secretId(secret)
      await signInLinks.insertOne({ _id: id, ...link })
      return { secret, link: { id, ...link } }
    },

    async findLink(id, now) {
      const found = await signInLinks.findOne({ _id: id, expiresAt: { $gt: now } })
      return found ? withId(found) : undefined
    },

    async accountLinks(workspaceId, now) {
      const open = { workspaceId, account: { $exists: true }, expiresAt: { $gt: now } } as const
      const found = await signInLinks.find(open).sort({ 'account.createdAt': -1 }).limit(maxListed).toArray()
      return found.map(withId) as (SignInLink & Required<Pick<SignInLink, 'account'>>)[]
    },

    newMailLinks: (workspaceId, operator, now) =>
      signInLinks.countDocuments({ workspaceId, operator, newMail: { $exists: true }, expiresAt: { $gt: now } }),

    async removeLinks(workspaceId, ids) {
      await signInLinks.deleteMany({ workspaceId, _id: { $in: ids } })
    },

    async removeLinksOf(workspaceId, operator) {
      await signInLinks.deleteMany({ workspaceId, $or: [{ operator }, { 'account.invitedBy': operator }] })
    },

    async takeLink(id, now) {
      const found = await signInLinks.findOneAndDelete({ _id: id, expiresAt: { $gt: now } })
      return found ? withId(found) : undefined
    },

    async insertSession({ id, ...session }) {
      await consoleSessions.insertOne({ _id: id, ...session })
    },

    async findSessions(ids) {
      return (await consoleSessions.find({ _id: { $in: ids } }).toArray()).map(withId)
    },

    async operatorsIn(workspaceId, now) {
      const found = consoleSessions.aggregate<{ _id: string; operator: string }>([
        { $match: { workspaceId, expiresAt: { $gt: now } } },
        { $group: { _id: '$displayName', operator: { $last: '$operator' } } },
      ])
      return (await found.toArray()).map(({ _id: displayName, operator }) => ({ displayName, operator }))
    },

    async sessionsIn(workspaceId, now, operator) {
      const open = { workspaceId, expiresAt: { $gt: now }, ...(operator !== undefined && { operator }) }
      return (await consoleSessions.find(open).sort({ createdAt: -1 }).limit(maxListed).toArray()).map(withId)
    },

    async removeSessions(ids) {
      await consoleSessions.deleteMany({ _id: { $in: ids } })
    },

    async claimRecheck(now, until) {
      const found = await leases.take({ now, until }, { expiresAt: { $gt: now } })
      return found && { lease: found.lease, session: withId(found.document) }
    },

    async updateSession(lease, change) {
      await leases.write(lease, { $set: change })
    },

    async postponeRecheck(lease, recheckAt) {
      await leases.write(lease, { $set: { 'provider.recheckAt': recheckAt } })
    },

    endSession: (lease) => leases.remove(lease),

    async insertAttempt({ id, ...attempt }) {
      await signInAttempts.insertOne({ _id: id, ...attempt })
    },

    async takeAttempt(id, browserId, now) {
      const found = await signInAttempts.findOneAndDelete({ _id: id, browserId, expiresAt: { $gt: now } })
      return found ? withId(found) : undefined
    },
  }
}

const withId = <D extends { _id: string }>({ _id, ...rest }: D) => ({ ...rest, id: _id })
