import type { Collection } from 'mongodb'
import type { ConsoleSession, SignInAttempt, SignInLink } from './model.ts'

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
  /** Returns the names in the sessions of a workspace that have not expired, each once. */
  namesIn(workspaceId: string, now: Date): Promise<string[]>
  removeSession(id: string): Promise<void>
  /** Changes a session, unless its sealed refresh token has changed. */
  updateSession(
    id: string,
    change: Required<Pick<ConsoleSession, 'displayName' | 'scopes' | 'provider'>>,
    sealed: string,
  ): Promise<void>
  /**
   * Returns a session whose claims must be read again. Sets the time of the next try, so that only
   * one core reads the claims.
   */
  claimRecheck(now: Date, retryAt: Date): Promise<ConsoleSession | undefined>
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

    async namesIn(workspaceId, now) {
      return consoleSessions.distinct('displayName', { workspaceId, expiresAt: { $gt: now } })
    },

    async removeSession(id) {
      await consoleSessions.deleteOne({ _id: id })
    },

    async updateSession(id, change, sealed) {
      await consoleSessions.updateOne({ _id: id, 'provider.sealed': sealed }, { $set: change })
    },

    async claimRecheck(now, retryAt) {
      const due = { 'provider.recheckAt': { $lte: now }, expiresAt: { $gt: now } }
      const found = await consoleSessions.findOneAndUpdate(due, { $set: { 'provider.recheckAt': retryAt } })
      return found ? withId(found) : undefined
    },

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
