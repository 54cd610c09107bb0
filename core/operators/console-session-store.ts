import { type Core, dateOf } from '../core.ts'
import { withId } from '../mongodb/with-id.ts'
import { type ConsoleSession, newSecret, type SignInAttempt, type SignInLink, secretId } from './model.ts'

export type ConsoleSessionDocument = { _id: string } & Omit<ConsoleSession, 'id'>
export type SignInLinkDocument = { _id: string } & Omit<SignInLink, 'id'>
export type SignInAttemptDocument = { _id: string } & Omit<SignInAttempt, 'id'>

export const maxListed = 1_000

export const notExpired = (core: Core) => ({ expiresAt: { $gt: dateOf(core) } })

export async function addLink({ db }: Core, link: Omit<SignInLink, 'id'>) {
  const secret = newSecret()
  const id = secretId(secret)
  await db.signInLinks.insertOne({ _id: id, ...link })
  return { secret, link: { id, ...link } }
}

/** Returns the link, unless it is used or expired. */
export async function storedLink(core: Core, secret: string): Promise<SignInLink | undefined> {
  const found = await core.db.signInLinks.findOne({ _id: secretId(secret), ...notExpired(core) })
  return found ? withId(found) : undefined
}

/** Removes the link and returns it. Of several concurrent calls, only one gets it. Undefined if it expired. */
export async function takeLink(core: Core, secret: string): Promise<SignInLink | undefined> {
  const found = await core.db.signInLinks.findOneAndDelete({ _id: secretId(secret), ...notExpired(core) })
  return found ? withId(found) : undefined
}

/** Returns the newest sessions of a workspace that have not expired. */
export async function consoleSessionsIn(core: Core, workspaceId: string, operator?: string): Promise<ConsoleSession[]> {
  const open = { workspaceId, ...notExpired(core), ...(operator !== undefined && { operator }) }
  return (await core.db.consoleSessions.find(open).sort({ createdAt: -1 }).limit(maxListed).toArray()).map(withId)
}

export async function insertAttempt({ db }: Core, { id, ...attempt }: SignInAttempt) {
  await db.signInAttempts.insertOne({ _id: id, ...attempt })
}

/** Removes the sign-in that this browser has begun, and returns it. Only one of several calls gets it. */
export async function takeAttempt(core: Core, id: string, browserId: string): Promise<SignInAttempt | undefined> {
  const found = await core.db.signInAttempts.findOneAndDelete({ _id: id, browserId, ...notExpired(core) })
  return found ? withId(found) : undefined
}
