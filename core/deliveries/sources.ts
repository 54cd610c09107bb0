import { setTimeout as delay } from 'node:timers/promises'
import type { Filter } from 'mongodb'
import { createLruCache } from '../../platform/lru-cache.ts'
import { type Core, perCore } from '../core.ts'
import type { LogEvent } from '../log-event.ts'
import { hasDocument } from '../mongodb/with-id.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { bytesOf, type Delivery, type DeliveryDocument } from './model.ts'
import { deliveryQueueOf } from './queue.ts'

type DeliveriesOf =
  | { conversationIds: string[]; leadIds: string[] }
  | { conversationId: string; messageSequence: number }

type About = Pick<Delivery, 'deliveryId' | 'leadId' | 'conversationId' | 'messageSequence'>

/** Milliseconds after which a delivery of an erased visitor is looked at again. */
const postponedMs = 30_000
/** A new delivery is written within this time after its source was read. */
const rememberedMs = 30_000
const maxRemembered = 10_000
/** A removal waits for the workers for this time at most. Later attempts end on their own. */
const recallMs = 1_000
const recallCheckMs = 20

/**
 * Prevents deliveries from sending removed data. Each delivery is checked after its claim was stored, and
 * a removal looks for deliveries after the removal was stored, so one finds the other. The source of a new
 * delivery was read a moment ago. So a new delivery is checked only if its source may have changed since: a
 * removal looks for deliveries after every core knows of the removal.
 */
export const changedSourcesOf = perCore((core) => {
  const { bus } = core
  const { maySend } = wakeupsOf(core)
  /** Ids that changed lately, with the time until which they are remembered. */
  const changed = createLruCache<number>(maxRemembered)
  let unknownUntil = Number.NEGATIVE_INFINITY
  const later = () => performance.now() + rememberedMs
  bus.on('changed', (ids) => {
    for (const id of ids) changed.set(id, later())
  })
  bus.on('gap', () => {
    unknownUntil = later()
  })
  return {
    /** Whether a source may have changed after a new delivery was read from it. */
    mayHaveChanged(ids: (string | undefined)[]) {
      const at = performance.now()
      return !maySend() || at < unknownUntil || ids.some((id) => id !== undefined && at < (changed.get(id) ?? 0))
    },
  }
})

/**
 * Returns deliveries without withdrawn texts, which are also removed from the stored bodies. Leaves out
 * those of removed data and erased visitors, which the removal deletes, and releases their claims.
 */
export async function findSendable<D extends About & { body?: Uint8Array }>(
  core: Core,
  found: D[],
  claimId: string | undefined,
  at: Date,
): Promise<D[]> {
  const [isRemoved, withdrawn] = await Promise.all([removals(core, found), withdrawals(core, found)])
  const removed = found.filter(isRemoved).map(({ deliveryId }) => deliveryId)
  if (claimId !== undefined && removed.length > 0)
    await deliveryQueueOf(core).releaseClaim(removed, claimId, at, new Date(at.getTime() + postponedMs))
  return Promise.all(
    found
      .filter((each) => !isRemoved(each))
      .map(async (delivery) => {
        const { conversationId = '', messageSequence = 0, body } = delivery
        const redactedAt = withdrawn.get(`${conversationId} ${messageSequence}`)
        if (!redactedAt || !body) return delivery
        await withdraw(core, { conversationId, messageSequence }, redactedAt)
        return { ...delivery, body: withoutText(body, redactedAt) }
      }),
  )
}

const stateOnly = { projection: { erasing: 1, conversationId: 1 } } as const
const idsIn = (ids: (string | undefined)[]) => [...new Set(ids.filter((id) => id !== undefined))]

/** Whether the conversation or lead of a delivery was removed, or belongs to an erased visitor. */
async function removals({ db: { leads, conversations } }: Core, found: About[]) {
  const leadIds = idsIn(found.map(({ leadId }) => leadId))
  const theirLeads = leadIds.length === 0 ? [] : await leads.find({ _id: { $in: leadIds } }, stateOnly).toArray()
  const conversationIds = idsIn([...found, ...theirLeads].map(({ conversationId }) => conversationId))
  const theirConversations =
    conversationIds.length === 0 ? [] : await conversations.find({ _id: { $in: conversationIds } }, stateOnly).toArray()
  const states = new Map([...theirLeads, ...theirConversations].map((each) => [each._id, each.erasing ?? 'visible']))
  const conversationOf = new Map(theirLeads.map(({ _id, conversationId = '' }) => [_id, conversationId]))
  const isGone = (id: string | undefined) => id !== undefined && (states.get(id) ?? true) === true
  return ({ leadId, conversationId }: About) =>
    isGone(leadId) || isGone(conversationId) || states.get(conversationOf.get(leadId ?? '') ?? '') === true
}

/** Returns when the messages that deliveries carry were withdrawn, by conversation and sequence. */
async function withdrawals({ db }: Core, found: About[]) {
  const carrying = found.filter(({ messageSequence }) => messageSequence !== undefined)
  if (carrying.length === 0) return new Map<string, Date>()
  const byConversation = Map.groupBy(carrying, ({ conversationId = '' }) => conversationId)
  const places = [...byConversation].map(([conversationId, theirs]) => ({
    conversationId,
    sequence: { $in: theirs.map(({ messageSequence = 0 }) => messageSequence) },
  }))
  const withdrawn = { $or: places, 'message.redactedAt': { $exists: true } }
  const projection = { conversationId: 1, sequence: 1, 'message.redactedAt': 1 }
  const events = await db.events.find(withdrawn, { projection }).toArray()
  return new Map(events.map((event) => [`${event.conversationId} ${event.sequence}`, event.message!.redactedAt!]))
}

export async function withdrawFromDeliveries(core: Core, redactions: LogEvent[]) {
  for (const { conversationId, messageSequence = 0, occurredAt } of redactions) {
    const of = { conversationId, messageSequence }
    await wakeupsOf(core).stateChanged(conversationId)
    await withdraw(core, of, occurredAt)
    await recallDeliveries(core, of)
  }
}

const about = (of: DeliveriesOf): Filter<DeliveryDocument> =>
  'messageSequence' in of
    ? of
    : { $or: [{ conversationId: { $in: of.conversationIds } }, { leadId: { $in: of.leadIds } }] }

/** Removes the text of a message from bodies, and from the answers of receivers, which may quote it. */
async function withdraw({ db: { deliveries } }: Core, of: DeliveriesOf, at: Date) {
  const theirs = about(of)
  await deliveries.updateMany(theirs, {
    $set: { withdrawnAt: at },
    $unset: { 'attempts.$[].outcome.responseText': '' },
  })
  const isKept = { body: { $exists: true } }
  const kept = await deliveries.find({ ...theirs, ...isKept }, { projection: { body: 1 } }).toArray()
  if (kept.length === 0) return
  await deliveries.bulkWrite(
    kept.map(({ _id, body }) => ({
      updateOne: { filter: { _id, ...isKept }, update: { $set: { body: withoutText(bytesOf(body), at) } } },
    })),
  )
}

function withoutText(body: Uint8Array, redactedAt: Date) {
  const { data, ...head } = JSON.parse(new TextDecoder().decode(body))
  return new TextEncoder().encode(JSON.stringify({ ...head, data: { ...data, body: '', redactedAt } }))
}

/** Makes the workers return what they have not begun to send. Does not wait for attempts that run. */
export async function recallDeliveries(core: Core, of: DeliveriesOf) {
  const { deliveries } = core.db
  const sending = { ...about(of), status: 'sending' as const }
  const found = await deliveries.find(sending, { projection: { subscriptionId: 1, claim: 1 } }).toArray()
  if (found.length === 0) return
  const until = performance.now() + recallMs
  await wakeupsOf(core).stateChanged(...new Set(found.map(({ subscriptionId }) => subscriptionId)))
  const claims = found.map(({ _id, claim }) => ({ _id, 'claim.claimId': claim?.claimId ?? '' }))
  const isHanded = { status: 'sending' as const, $or: claims }
  while (performance.now() < until && (await hasDocument(deliveries, isHanded))) await delay(recallCheckMs)
}
