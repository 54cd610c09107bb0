import { type EventFacts, eventData } from '../../contract/event-data.ts'
import { sentFields } from '../../contract/lead-fields.ts'
import { createFollower, handleEach } from '../concurrency/follower.ts'
import { createPace } from '../concurrency/pace.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import { type Core, perCore } from '../core.ts'
import { addAutomaticDelivery, type DeliveryContent, leadContent } from '../deliveries/intake.ts'
import { followingFeed, liveSubscriptionsOf } from '../deliveries/live-subscriptions.ts'
import { coversLead, defaultPolicy, isHook, type LeadSubscription } from '../deliveries/subscription-model.ts'
import { findSuppressedLeads } from '../leads/suppressions.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { appendToFeed, entriesAfter } from './feed-log.ts'
import { type FeedEvent, withContent } from './feed-reader.ts'
import { type FeedEntry, feedHint, type NewFeedEntry, reasonOf } from './model.ts'

/** A destination and the last entry whose deliveries exist. */
interface FeedDestination {
  subscriptionId: string
  followedTo: number
  isHook: boolean
}

/** Workspaces that wait in memory. `catchUp` handles further ones. */
const maxWaiting = 10_000
const entriesPerRead = 100
const workspacesPerRead = 100
const paceMs = 50
const share = 1 / 5

/** Like `appendToFeed`; then tells all cores, and creates the deliveries of the entries. */
export async function addToFeed(core: Core, workspaceId: string, entries: NewFeedEntry[]) {
  await appendToFeed(core, workspaceId, entries)
  if (entries.length === 0) return
  eventFanOutOf(core).added(workspaceId)
  const warn = ({ name: reason }: Error) => core.logger.warn({ reason }, 'sending the wake-up of a feed failed')
  wakeupsOf(core).hint(feedHint(workspaceId)).catch(warn)
}

/**
 * Creates the deliveries of entries, to hooks and to lead subscriptions whose policies name events of
 * leads. Any process may create them, also twice: their key names the entry and the destination.
 */
export const eventFanOutOf = perCore((core) => {
  const live = liveSubscriptionsOf(core)
  const closed = new AbortController()
  const { signal } = closed
  /** Workspaces with new entries, and since when they wait. */
  const waiting = new Map<string, number>()
  const known = new Set<string>()
  const lagMs = () => performance.now() - ([...waiting.values()][0] ?? performance.now())
  const paced = createPace({ share, lagMs, signal })
  let isActive = false

  /** Sends the rest of a feed. A failure for some destinations does not stop the others. */
  async function bringUp(workspaceId: string) {
    const destinations = await findDestinations(core, workspaceId)
    const hookIds = new Set(destinations.flatMap((each) => (each.isHook ? each.subscriptionId : [])))
    const groups = [...Map.groupBy(destinations, ({ followedTo }) => followedTo)]
    await handleEach(groups, ([followedTo, group]) => {
      let place = followedTo
      const follower = createFollower({
        batch: entriesPerRead,
        read: (limit) => entriesAfter(core, workspaceId, place, limit),
        async handle(entries) {
          await sendAll(core, workspaceId, entries, group, hookIds)
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
      await handleEach(
        batch.filter((_, index) => followed[index]),
        bringUp,
      )
    },
    { paceMs },
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

    /** Creates the deliveries that other processes left out. */
    catchUp() {
      let after = ''
      const follower = createFollower({
        batch: workspacesPerRead,
        read: (limit) => nextFollowed(core, after, limit),
        async handle(found) {
          after = found.at(-1)!._id
          await handleEach(found, ({ _id }) => bringUp(_id))
        },
        signal,
      })
      return follower.run()
    },

    /** Whether deliveries were created lately for this feed, or for any. */
    isFollowed: (workspaceId?: string) => (workspaceId === undefined ? known.size > 0 : known.has(workspaceId)),
    lagMs,
    close: () => closed.abort(),
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

async function findDestinations({ db }: Core, workspaceId: string): Promise<FeedDestination[]> {
  const projection = { followedTo: 1, resource: 1 }
  const found = await db.leadSubscriptions.find({ workspaceId, ...followingFeed }, { projection }).toArray()
  return found.map(({ _id, followedTo = 0, resource }) => ({
    subscriptionId: _id,
    followedTo,
    isHook: isHook({ resource }),
  }))
}

/**
 * Sends the events to the destinations that want them. Then stores the position of each that has not
 * failed.
 */
async function sendAll(
  core: Core,
  workspaceId: string,
  entries: FeedEntry[],
  to: FeedDestination[],
  hookIds: Set<string>,
) {
  const found = await Promise.all(to.map(({ subscriptionId }) => liveSubscriptionsOf(core).find(subscriptionId)))
  const destinations = found.filter((known) => known !== undefined)
  const types = new Set(destinations.flatMap(({ subscription: { policy = defaultPolicy } }) => policy.types))
  const events = await withContent(
    core,
    workspaceId,
    entries.filter(({ type }) => types.has(type)),
  )
  const suppressed = await findSuppressedLeads(
    core,
    events.flatMap(({ lead }) => lead ?? []),
  )
  const outcomes = await Promise.allSettled(
    destinations.map(async (known) => {
      const { subscription } = known
      const { subscriptionId } = subscription
      const wanted = events.filter((event) => isWanted(event, subscription, hookIds))
      await Promise.all(
        wanted.map((event) => {
          const key = `${workspaceId} event ${event.entry.source} ${subscriptionId}`
          const isSuppressed = suppressed.has(event.lead?.leadId ?? '')
          return addAutomaticDelivery(core, key, contentOf(event, subscription), known, { isSuppressed })
        }),
      )
      return subscriptionId
    }),
  )
  const failed = outcomes.filter(({ status }) => status === 'rejected')
  const sent = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []))
  const { number } = entries.at(-1)!
  await core.db.leadSubscriptions.updateMany(
    { _id: { $in: sent }, followedTo: { $lt: number } },
    { $set: { followedTo: number } },
  )
  for (const { reason } of failed as PromiseRejectedResult[]) throw reason
}

function isWanted(
  { entry, lead }: FeedEvent,
  { policy = defaultPolicy, ...to }: LeadSubscription,
  hookIds: Set<string>,
) {
  const { type, disabled, delivery } = entry
  if (!policy.types.includes(type)) return false
  if (!isHook(to)) return lead !== undefined && coversLead(policy, lead)
  // Otherwise their failures would cause further events.
  return !hookIds.has(disabled?.subscriptionId ?? delivery?.subscriptionId ?? '')
}

type To = Pick<LeadSubscription, 'resource' | 'mappedFields' | 'sentNames' | 'sentAs'>

function factsOf({ entry, event }: FeedEvent): EventFacts {
  const { conversationId, sequence, leadId, workflowId, delivery, disabled } = entry
  const { message, data, sessionId } = event ?? {}
  return {
    conversationId,
    sequence,
    messageId: message?.messageId ?? data?.messageId,
    body: message?.body,
    redactedAt: message?.redactedAt,
    displayName: message?.author.displayName ?? data?.agent?.displayName,
    sentAt: data?.sentAt,
    sessionId,
    leftReason: event && reasonOf(event),
    tag: data?.tag,
    score: data?.score,
    comment: data?.comment,
    leadId,
    subscriptionId: delivery?.subscriptionId ?? disabled?.subscriptionId,
    deliveryId: delivery?.deliveryId,
    workflowId,
    outcome: delivery?.outcome,
    disabledReason: disabled?.reason,
  }
}

/** Returns the fields of the address that belongs to an unseen message. */
const fieldsOf = ({ entry, lead }: FeedEvent, to: To) =>
  entry.type === 'message.unseen' && lead && !isHook(to) ? sentFields(lead.fields, to) : {}

/** Only lead subscriptions get fields of the lead. */
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
