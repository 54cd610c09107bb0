import { type EventFacts, eventData } from '../../contract/event-data.ts'
import { sentFields } from '../../contract/lead-fields.ts'
import { createFollower, handleEach } from '../concurrency/follower.ts'
import { createPace } from '../concurrency/pace.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import { type Core, perCore } from '../core.ts'
import { addAutomaticDelivery, type DeliveryContent, leadContent } from '../deliveries/intake.ts'
import { followingFeed, liveSubscriptionsOf } from '../deliveries/live-subscriptions.ts'
import { coversLead, defaultPolicy, isHook, type LeadSubscription } from '../deliveries/subscription-model.ts'
import { logFailure } from '../errors.ts'
import { findSuppressedLeads } from '../leads/suppressions.ts'
import { idsOf } from '../mongodb/with-id.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { appendToFeed, entriesAfter } from './feed-log.ts'
import { type FeedEvent, withContent } from './feed-reader.ts'
import { type FeedEntry, feedHint, type NewFeedEntry, reasonOf } from './model.ts'

/** Maximum number of workspaces that wait in memory. `catchUp` handles further ones. */
const maxWaiting = 10_000

/** Like `appendToFeed`; then tells all cores, and creates the deliveries of the entries. */
export async function addToFeed(core: Core, workspaceId: string, entries: NewFeedEntry[]) {
  await appendToFeed(core, workspaceId, entries)
  if (entries.length === 0) return
  eventFanOutOf(core).added(workspaceId)
  wakeupsOf(core).hint(feedHint(workspaceId)).catch(logFailure(core.logger, 'sending the wake-up of a feed failed'))
}

/** Adds entries to the feeds of their workspaces, each feed in the given order. */
export async function addToFeeds(core: Core, added: { workspaceId: string; entries: NewFeedEntry[] }[]) {
  for (const [workspaceId, theirs] of Map.groupBy(added, (each) => each.workspaceId)) {
    const entries = theirs.flatMap((each) => each.entries)
    await addToFeed(core, workspaceId, entries)
  }
}

/**
 * Creates the deliveries of entries, to hooks and to lead subscriptions whose policies name events of
 * leads. Any process may create them, also twice: their key names the entry and the destination.
 */
export const eventFanOutOf = perCore((core) => {
  const live = liveSubscriptionsOf(core)
  const { signal } = core.closing
  /** Workspaces with new entries, and since when they wait. */
  const waiting = new Map<string, number>()
  const known = new Set<string>()
  const lagMs = () => performance.now() - ([...waiting.values()][0] ?? performance.now())
  const paced = createPace({ share: 1 / 5, lagMs, signal })
  let isActive = false

  /** Sends the rest of a feed. A failure for some destinations does not stop the others. */
  async function bringUp(workspaceId: string) {
    const projection = { followedTo: 1, resource: 1 }
    const found = await core.db.leadSubscriptions.find({ workspaceId, ...followingFeed }, { projection }).toArray()
    const hookIds = new Set(idsOf(found.filter(isHook)))
    const groups = [...Map.groupBy(found, ({ followedTo = 0 }) => followedTo)]
    await handleEach(groups, ([followedTo, group]) => {
      let place = followedTo
      const follower = createFollower({
        batch: 100,
        read: (limit) => entriesAfter(core, workspaceId, place, limit),
        async handle(entries) {
          await sendAll(core, workspaceId, entries, idsOf(group), hookIds)
          place = entries.at(-1)!.number
        },
        paced,
        signal,
      })
      return follower.run()
    })
  }

  const flushing = createSingleFlight(
    () => waiting.size > 0 && !signal.aborted,
    async () => {
      const batch = [...waiting.keys()]
      waiting.clear()
      const followed = await Promise.all(batch.map(live.isFollowed))
      for (const [index, workspaceId] of batch.entries()) {
        known.delete(workspaceId)
        if (followed[index] && known.size < maxWaiting) known.add(workspaceId)
      }
      const wanted = batch.filter((_, index) => followed[index])
      await handleEach(wanted, bringUp)
    },
    { paceMs: 50 },
  )

  return {
    added(workspaceId: string) {
      if (waiting.size < maxWaiting && !waiting.has(workspaceId)) waiting.set(workspaceId, performance.now())
      if (isActive) flushing.run().catch(() => {}) // `catchUp` creates the deliveries and logs the error.
    },

    /**
     * Creates the deliveries of entries that this process has added. After the first call, also by itself.
     */
    flush() {
      isActive = true
      return flushing.run()
    },

    catchUp() {
      let after = ''
      const follower = createFollower({
        batch: 100,
        read: (limit) => nextFollowed(core, after, limit),
        async handle(found) {
          after = found.at(-1)!._id
          await handleEach(found, ({ _id }) => bringUp(_id))
        },
        signal,
      })
      return follower.run()
    },

    /** Whether deliveries were created lately for this feed. Without an id: for any feed. */
    isFollowed: (workspaceId?: string) => (workspaceId === undefined ? known.size > 0 : known.has(workspaceId)),
    lagMs,
  }
})

const nextFollowed = ({ db }: Core, after: string, limit: number) =>
  db.leadSubscriptions
    .aggregate<{ _id: string }>([
      { $match: { workspaceId: { $gt: after }, ...followingFeed } },
      { $group: { _id: '$workspaceId' } },
      { $sort: { _id: 1 } },
      { $limit: limit },
    ])
    .toArray()

/** Sends the wanted events. Then stores the position of each destination that has not failed. */
async function sendAll(core: Core, workspaceId: string, entries: FeedEntry[], ids: string[], hookIds: Set<string>) {
  const found = await Promise.all(ids.map((id) => liveSubscriptionsOf(core).find(id)))
  const destinations = found.filter((known) => known !== undefined)
  const types = new Set(destinations.flatMap(({ subscription: { policy = defaultPolicy } }) => policy.types))
  const wanted = entries.filter(({ type }) => types.has(type))
  const events = await withContent(core, workspaceId, wanted)
  const leads = events.flatMap(({ lead }) => lead ?? [])
  const suppressed = await findSuppressedLeads(core, leads)
  const sent: string[] = []
  const outcomes = await Promise.allSettled(
    destinations.map(async (known) => {
      const { subscription } = known
      const { subscriptionId } = subscription
      const theirs = events.filter((event) => isWanted(event, subscription, hookIds))
      await Promise.all(
        theirs.map((event) => {
          const key = `${workspaceId} event ${event.entry.source} ${subscriptionId}`
          const isSuppressed = suppressed.has(event.lead?.leadId ?? '')
          return addAutomaticDelivery(core, key, contentOf(event, subscription), known, { isSuppressed })
        }),
      )
      sent.push(subscriptionId)
    }),
  )
  const { number } = entries.at(-1)!
  const behind = { _id: { $in: sent }, followedTo: { $lt: number } }
  await core.db.leadSubscriptions.updateMany(behind, { $set: { followedTo: number } })
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
}

function isWanted({ entry, lead }: FeedEvent, to: LeadSubscription, hookIds: Set<string>) {
  const { policy = defaultPolicy } = to
  const { type, disabled, delivery } = entry
  if (!policy.types.includes(type)) return false
  if (!isHook(to)) return lead !== undefined && coversLead(policy, lead)
  // Hooks get no events about hooks: their failures would cause further events.
  return !hookIds.has(disabled?.subscriptionId ?? delivery?.subscriptionId ?? '')
}

type To = Pick<LeadSubscription, 'resource' | 'mappedFields' | 'sentNames' | 'sentAs'>

function factsOf({ entry, event }: FeedEvent): EventFacts {
  const { conversationId, sequence, leadId, workflowId, delivery, disabled } = entry
  const { message, data, sessionId } = event ?? {}
  return {
    ...data,
    ...message,
    ...disabled,
    ...delivery,
    ...{ conversationId, sequence, leadId, workflowId, sessionId },
    displayName: message?.author.displayName ?? data?.agent?.displayName,
    leftReason: event && reasonOf(event),
    disabledReason: disabled?.reason,
  }
}

/** Returns the fields of the address that belongs to an unseen message. */
const fieldsOf = ({ entry, lead }: FeedEvent, to: To) =>
  entry.type === 'message.unseen' && lead && !isHook(to) ? sentFields(lead.fields, to) : {}

/** Returns what a destination gets for an event. Only lead subscriptions get fields of the lead. */
export function contentOf(event: FeedEvent, to: To): DeliveryContent {
  const { entry, lead } = event
  const { type, leadId, conversationId, sequence, occurredAt } = entry
  const eventType = to.sentAs?.[type] ?? type
  const content =
    type === 'lead.captured' && lead && !isHook(to)
      ? leadContent(lead, to, type)
      : ({ eventType, data: { ...eventData(eventType, factsOf(event)), ...fieldsOf(event, to) } } as DeliveryContent)
  return { ...content, leadId, conversationId, messageSequence: event.event?.message && sequence, occurredAt }
}
