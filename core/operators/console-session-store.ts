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

export function createConsoleSessionStore({
  consoleSessions,
  signInLinks,
  signInAttempts,
}: {
  consoleSessions: Collection<ConsoleSessionDocument>
  signInLinks: Collection<SignInLinkDocument>
  signInAttempts: Collection<SignInAttemptDocument>
}) {
  const leases = createLeases(consoleSessions, { until: 'provider.recheckAt', token: 'provider.recheckToken' })

  return {
    /** Creates a link with a new secret. */
    async addLink(link: Omit<SignInLink, 'id'>): Promise<{ secret: string; link: SignInLink }> {
      const secret = newSecret()
      const id = secretId(secret)
      await signInLinks.insertOne({ _id: id, ...link })
      return { secret, link: { id, ...link } }
    },

    /** Returns the link, unless it is used or expired. */
    async findLink(id: string, now: Date): Promise<SignInLink | undefined> {
      const found = await signInLinks.findOne({ _id: id, expiresAt: { $gt: now } })
      return found ? withId(found) : undefined
    },

    /** Returns the links of a workspace that sign in accounts, newest first. */
    async accountLinks(
      workspaceId: string,
      now: Date,
    ): Promise<(SignInLink & Required<Pick<SignInLink, 'account'>>)[]> {
      const open = { workspaceId, account: { $exists: true }, expiresAt: { $gt: now } } as const
      const found = await signInLinks.find(open).sort({ 'account.createdAt': -1 }).limit(maxListed).toArray()
      return found.map(withId) as (SignInLink & Required<Pick<SignInLink, 'account'>>)[]
    },

    /** Counts the links of an account that set a mail address. */
    newMailLinks: (workspaceId: string, operator: string, now: Date): Promise<number> =>
      signInLinks.countDocuments({ workspaceId, operator, newMail: { $exists: true }, expiresAt: { $gt: now } }),
    async removeLinks(workspaceId: string, ids: string[]): Promise<void> {
      await signInLinks.deleteMany({ workspaceId, _id: { $in: ids } })
    },

    /** Removes the links of an account, and those that its operator has made. */
    async removeLinksOf(workspaceId: string, operator: string): Promise<void> {
      await signInLinks.deleteMany({ workspaceId, $or: [{ operator }, { 'account.invitedBy': operator }] })
    },

    /**
     * Removes the link and returns it. Of several concurrent calls, only one gets the link. Returns
     * undefined for an unknown, used or expired link.
     */
    async takeLink(id: string, now: Date): Promise<SignInLink | undefined> {
      const found = await signInLinks.findOneAndDelete({ _id: id, expiresAt: { $gt: now } })
      return found ? withId(found) : undefined
    },

    async insertSession({ id, ...session }: ConsoleSession): Promise<void> {
      await consoleSessions.insertOne({ _id: id, ...session })
    },

    async findSessions(ids: string[]): Promise<ConsoleSession[]> {
      return (await consoleSessions.find({ _id: { $in: ids } }).toArray()).map(withId)
    },

    /** Returns the operators in the sessions of a workspace that have not expired, each name once. */
    async operatorsIn(workspaceId: string, now: Date): Promise<SignedInOperator[]> {
      const found = consoleSessions.aggregate<{ _id: string; operator: string }>([
        { $match: { workspaceId, expiresAt: { $gt: now } } },
        { $group: { _id: '$displayName', operator: { $last: '$operator' } } },
      ])
      return (await found.toArray()).map(({ _id: displayName, operator }) => ({ displayName, operator }))
    },

    /** Returns the newest sessions of a workspace that have not expired. */
    async sessionsIn(workspaceId: string, now: Date, operator?: string): Promise<ConsoleSession[]> {
      const open = { workspaceId, expiresAt: { $gt: now }, ...(operator !== undefined && { operator }) }
      return (await consoleSessions.find(open).sort({ createdAt: -1 }).limit(maxListed).toArray()).map(withId)
    },

    async removeSessions(ids: string[]): Promise<void> {
      await consoleSessions.deleteMany({ _id: { $in: ids } })
    },

    /** Leases a session whose claims must be read again, so that only one core reads them. */
    async claimRecheck(now: Date, until: Date): Promise<{ lease: Lease; session: ConsoleSession } | undefined> {
      const found = await leases.take({ now, until }, { expiresAt: { $gt: now } })
      return found && { lease: found.lease, session: withId(found.document) }
    },

    /** Changes a session. Throws `LeaseLost` if another core reads its claims. */
    async updateSession(
      lease: Lease,
      change: Pick<ConsoleSession, 'displayName' | 'scopes' | 'provider'>,
    ): Promise<void> {
      await leases.write(lease, { $set: change })
    },

    /** Sets the time of the next check. */
    async postponeRecheck(lease: Lease, recheckAt: Date): Promise<void> {
      await leases.write(lease, { $set: { 'provider.recheckAt': recheckAt } })
    },

    /** Removes a session, unless another core reads its claims. */
    endSession: (lease: Lease): Promise<void> => leases.remove(lease),
    async insertAttempt({ id, ...attempt }: SignInAttempt): Promise<void> {
      await signInAttempts.insertOne({ _id: id, ...attempt })
    },

    /**
     * Removes the sign-in that this browser has begun, and returns it. Of several concurrent calls,
     * only one gets the sign-in.
     */
    async takeAttempt(id: string, browserId: string, now: Date): Promise<SignInAttempt | undefined> {
      const found = await signInAttempts.findOneAndDelete({ _id: id, browserId, expiresAt: { $gt: now } })
      return found ? withId(found) : undefined
    },
  }
}

export type ConsoleSessionStore = ReturnType<typeof createConsoleSessionStore>

const withId = <D extends { _id: string }>({ _id, ...rest }: D) => ({ ...rest, id: _id })
