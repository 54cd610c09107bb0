import type { Collection } from 'mongodb'
import type { ConsoleSession, SignInLink } from './model.ts'

export type ConsoleSessionDocument = { _id: string } & Omit<ConsoleSession, 'id'>
export type SignInLinkDocument = { _id: string } & Omit<SignInLink, 'id'>

export interface ConsoleSessionStore {
  insertLink(link: SignInLink): Promise<void>
  /**
   * Removes the link and returns it. Of several concurrent calls, only one gets the link. Returns
   * undefined for an unknown, used or expired link.
   */
  takeLink(id: string, now: Date): Promise<SignInLink | undefined>
  insertSession(session: ConsoleSession): Promise<void>
  findSessions(ids: string[]): Promise<ConsoleSession[]>
  removeSession(id: string): Promise<void>
}

export function createConsoleSessionStore({
  consoleSessions,
  signInLinks,
}: {
  consoleSessions: Collection<ConsoleSessionDocument>
  signInLinks: Collection<SignInLinkDocument>
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

    async removeSession(id) {
      await consoleSessions.deleteOne({ _id: id })
    },
  }
}

const withId = <D extends { _id: string }>({ _id, ...rest }: D) => ({ ...rest, id: _id })
