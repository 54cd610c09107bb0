import type { Collection, Db } from 'mongodb'
import type { ConversationDocument } from '../conversations/conversation-store.ts'
import type { QueuePlace } from '../conversations/model.ts'
import type { LeadSubscriptionDocument } from '../destinations/lead-subscription-store.ts'
import { operationalEvents } from '../destinations/policy-model.ts'
import { sealedDestination } from '../destinations/sealed-destination.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import type { EventDocument } from '../log/event-store.ts'
import { sealsDestinations } from '../mongodb/migration-records.ts'

/** Encrypts data that a migration moves to an encrypted field. */
export type Sealer = Pick<SecretBox, 'seal'>

/**
 * A change of stored data in two steps. `expand` only adds data, so it may run while processes of
 * the previous version run. `contract` may run only when no such process is left. Both steps can be
 * repeated after a failure.
 */
export interface Migration {
  number: number
  name: string
  expand(db: Db): Promise<void>
  contract?(db: Db, sealer: Sealer): Promise<void>
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
  {
    number: sealsDestinations,
    name: 'the URLs of destinations are encrypted',
    // This version reads plain URLs too, so nothing is added.
    expand: async () => {},
    contract: (db, sealer) => sealDestinations(db.collection('leadSubscriptions'), sealer),
  },
  {
    number: 4,
    name: 'lists of deliveries use the indexes by status only',
    expand: async () => {},
    contract: dropListIndexes,
  },
  {
    number: 5,
    name: 'conversations have their place in the queues of operators',
    expand: placeInQueues,
    // Also places conversations that the previous version changed after `expand`.
    contract: placeInQueues,
  },
  {
    number: 6,
    name: 'endpoints for operational events are event hooks',
    // The previous version still finds its endpoints by `isOperational`.
    expand: moveOperationalEvents,
    async contract(db) {
      await moveOperationalEvents(db)
      const outdated = { isOperational: { $exists: true } }
      await db.collection('leadSubscriptions').updateMany(outdated, { $unset: { isOperational: '' } })
    },
  },
]

async function moveOperationalEvents(db: Db) {
  const unmoved = { isOperational: true, resource: { $exists: false } }
  const hook = { resource: 'hook', ...operationalEvents, followedTo: 0 }
  await db.collection('leadSubscriptions').updateMany(unmoved, { $set: hook })
}

async function sealDestinations(subscriptions: Collection<LeadSubscriptionDocument>, sealer: Sealer) {
  const plain = { destinationUrl: { $exists: true } }
  // A core may change a URL at the same time. Then the URL is read again.
  while (await subscriptions.findOne(plain)) {
    for await (const { _id, destinationUrl = '' } of subscriptions.find(plain)) {
      await subscriptions.updateOne(
        { _id, destinationUrl },
        { $set: { destination: sealedDestination(sealer, destinationUrl) }, $unset: { destinationUrl: '' } },
      )
    }
  }
}

async function dropListIndexes(db: Db) {
  const deliveries = db.collection('deliveries')
  const names = (await deliveries.indexes()).map(({ name = '' }) => name)
  for (const name of ['by_workspace', 'by_subscription']) if (names.includes(name)) await deliveries.dropIndex(name)
}

/** Derives the place from the last message, because the events of earlier versions lack it. */
async function placeInQueues(db: Db) {
  const conversations = db.collection<ConversationDocument>('conversations')
  const isOutdated = {
    lastMessageAt: { $exists: true },
    $expr: {
      $or: [{ $gt: ['$lastSequence', '$queue.sequence'] }, { $gt: ['$closedSequence', '$queue.sequence'] }],
    },
  }
  for await (const { _id, lastSequence = 0, closedSequence = 0, lastMessageAt } of conversations.find(isOutdated, {
    projection: { notes: 0 },
  })) {
    const last = await db.collection<EventDocument>('events').findOne({ conversationId: _id, sequence: lastSequence })
    const isClosed = closedSequence > lastSequence
    const isWaiting = !isClosed && last?.message?.author.kind === 'visitor'
    const queue: QueuePlace = {
      sequence: Math.max(lastSequence, closedSequence),
      ...(!isClosed && { open: true }),
      ...(isWaiting && { waitingSince: lastMessageAt }),
    }
    await conversations.updateOne({ _id }, { $max: { queue } })
  }
}

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
