import type { Db } from 'mongodb'

/**
 * A change of what is stored, in two halves. `expand` may run while the version before still does: it adds, and takes
 * nothing away. `contract` runs when no process of that version is left. Each may be run again after it broke off.
 */
export interface Migration {
  number: number
  name: string
  expand(db: Db): Promise<void>
  contract?(db: Db): Promise<void>
}

/** What there is to be done of a database's changes; the numbers are given out once. */
export const migrations: Migration[] = [
  {
    number: 1,
    name: 'idempotency records name their sessions, so that an erasure finds them',
    expand: nameSessions,
    // What the version before wrote since then.
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
