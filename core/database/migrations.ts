import type { Db } from 'mongodb'

/**
 * A change of stored data in two steps. `expand` only adds data, so it may run while processes of
 * the previous version run. `contract` may run only when no such process is left. Both steps can be
 * repeated after a failure.
 */
export interface Migration {
  number: number
  name: string
  expand(db: Db): Promise<void>
  contract?(db: Db): Promise<void>
}

/** All migrations. A number is never reused. */
export const migrations: Migration[] = [
  {
    number: 1,
    name: 'idempotency records name their sessions, so that an erasure finds them',
    expand: nameSessions,
    // Also converts records that the previous version wrote after `expand`.
    contract: nameSessions,
  },
  {
    number: 2,
    name: 'conversations have the session of their last message with its place, and their status from their last closing',
    expand: placeLastSessions,
    async contract(db) {
      await placeLastSessions(db)
      const outdated = { $or: [{ lastSessionId: { $exists: true } }, { status: { $exists: true } }] }
      await db.collection('conversations').updateMany(outdated, { $unset: { lastSessionId: '', status: '' } })
    },
  },
]

async function placeLastSessions(db: Db) {
  await db
    .collection('conversations')
    .updateMany({ lastSessionId: { $type: 'string' }, lastSession: { $exists: false } }, [
      { $set: { lastSession: { sequence: '$lastSequence', sessionId: '$lastSessionId' } } },
    ])
}

async function nameSessions(db: Db) {
  await db
    .collection('idempotency')
    .updateMany({ 'result.sessionId': { $type: 'string' }, sessionIds: { $exists: false } }, [
      { $set: { sessionIds: ['$result.sessionId'] } },
    ])
}
