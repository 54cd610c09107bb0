import type { Collection } from 'mongodb'
import { createLeases, type Lease } from '../mongodb/leases.ts'
import type { ConsoleSession, SignedInOperator, SignInAttempt, SignInLink } from './model.ts'

export type ConsoleSessionDocument = { _id: string } & Omit<ConsoleSession, 'id'>
export type SignInLinkDocument = { _id: string } & Omit<SignInLink, 'id'>

export type SignInAttemptDocument = { _id: string } & Omit<SignInAttempt, 'id'>

export interface ConsoleSessionStore {
  insertLink(link: SignInLink): Promise<void>
  /**
   * Removes the link and returns it. Of several concurrent calls, only one gets the link. Returns
   * undefined for an unknown, used or expired link.
   */
  takeLink(id: string, now: Date): Promise<SignInLink | undefined>
  insertSession(session: ConsoleSession): Promise<void>
  findSessions(ids: string[]): Promise<ConsoleSession[]>
  /** Returns the operators in the sessions of a workspace that have not expired, each name once. */
  operatorsIn(workspaceId: string, now: Date): Promise<SignedInOperator[]>
  removeSession(id: string): Promise<void>
  /** Leases a session whose claims must be read again, so that only one core reads them. */
  claimRecheck(now: Date, until: Date): Promise<{ lease: Lease; session: ConsoleSession } | undefined>
  /** Changes a session. Throws `LeaseLost` if another core reads its claims. */
  updateSession(lease: Lease, change: Pick<ConsoleSession, 'displayName' | 'scopes' | 'provider'>): Promise<void>
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
    async insertLink({ id, ...link }) {
      await signInLinks.insertOne({ _id: id, ...link })
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

    async removeSession(id) {
      await consoleSessions.deleteOne({ _id: id })
    },

    async claimRecheck(now, until) {
      const found = await leases.take({ now, until }, { expiresAt: { $gt: now } })
      return found && { lease: found.lease, session: withId(found.document) }
    },

    async updateSession(lease, change) {
      await leases.write(lease, { $set: change })
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
