import type { Conversation } from '../conversations/conversation-store.ts'
import { newEpoch, plannedId } from '../ids.ts'
import { type Keyring, keyedHash } from '../keys/keyring.ts'
import { grantTimes } from './session-content.ts'
import type { Session } from './session-store.ts'

export interface SessionLifetimes {
  /** Seconds. */
  grantLifetime: number
  sessionLifetime: number
}

/** The id of the object that an operation makes. Every run of the operation gets the same id. */
export function idOfOperation(keyring: Keyring, prefix: 'ses' | 'cnv', ...operation: string[]): string {
  return plannedId(prefix, keyedHash(keyring.current('planned-id').key, prefix, ...operation))
}

/** Returns a session that begins now, with its first grant. */
export function newSession(
  facts: Omit<Session, 'status' | 'createdAt' | 'grantExpiresAt' | 'endsAt' | 'renewal'>,
  now: number,
  { grantLifetime, sessionLifetime }: SessionLifetimes,
): Session {
  const createdAt = new Date(now)
  const endsAt = new Date((Math.floor(now / 1000) + sessionLifetime) * 1000)
  const { expiresAt } = grantTimes(now, grantLifetime, endsAt)
  return {
    ...facts,
    status: 'active',
    createdAt,
    grantExpiresAt: new Date(expiresAt * 1000),
    endsAt,
    renewal: { generation: 0, previousUntil: createdAt },
  }
}

export function newConversation(
  { conversationId, workspaceId, connectionId }: Pick<Session, 'conversationId' | 'workspaceId' | 'connectionId'>,
  now: number,
): Conversation {
  return { conversationId, workspaceId, connectionId, epoch: newEpoch(), createdAt: new Date(now) }
}

/** The first grant of a session that has not been renewed. */
export function firstGrantOf({ createdAt, grantExpiresAt, renewal }: Session) {
  return {
    issuedAt: Math.floor(createdAt.getTime() / 1000),
    expiresAt: grantExpiresAt.getTime() / 1000,
    generation: renewal.generation,
  }
}
