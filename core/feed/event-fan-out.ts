import { createPace } from '../concurrency/pace.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import type { DeliveryIntake } from '../deliveries/delivery-intake.ts'
import { newDelivery } from '../deliveries/new-delivery.ts'
import type { EventFollowerStore, Follower } from '../destinations/event-follower-store.ts'
import type { KnownSubscription, LiveSubscriptions } from '../destinations/live-subscriptions.ts'
import type { LeadSubscription } from '../destinations/model.ts'
import { coversLead, defaultPolicy, isHook } from '../destinations/policy-model.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import type { Suppressions } from '../leads/suppressions.ts'
import { contentOf } from './event-data.ts'
import type { FeedEvent, FeedReader } from './feed-reader.ts'
import type { FeedStore } from './feed-store.ts'
import type { FeedEntry } from './model.ts'

export interface EventFanOut {
  /** Tells that the feed of a workspace has new entries. */
  added(workspaceId: string): void
  /** Creates the deliveries of the entries that this process has added. From the first call on, also by itself. */
  flush(): Promise<void>
  /** Creates the deliveries that other processes left out. */
  catchUp(): Promise<void>
  /** Whether deliveries were created lately for the entries of this feed, or of any feed. */
  isFollowed(workspaceId?: string): boolean
  /** Time in milliseconds for which the oldest workspace has waited. */
  lagMs(): number
  /** Ends the work in progress after the current write. */
  close(): void
}

/** Maximum number of workspaces that wait in memory. `catchUp` handles further ones. */
const maxWaiting = 10_000
const entriesPerRead = 100
const workspacesPerRead = 100
const paceMs = 50
const share = 1 / 5

/**
 * Creates the deliveries of the feed's events: to hooks, and to lead subscriptions whose policies have
 * events of leads. Each destination stores the last entry whose deliveries exist. Any process may
 * create them, also twice: the key of a delivery names the entry and the destination.
 */
export function createEventFanOut(dependencies: {
  store: Pick<FeedStore, 'after'>
  withContent: FeedReader['withContent']
  followerStore: Pick<EventFollowerStore, 'followers' | 'nextFollowed' | 'markFollowed'>
  liveSubscriptions: Pick<LiveSubscriptions, 'find' | 'isFollowed'>
  suppressions: Pick<Suppressions, 'suppressedLeads'>
  intake: DeliveryIntake
  settings: { bodyMaxBytes: number; retentionDays: number }
  now: () => number
}): EventFanOut {
  const { store, withContent, followerStore, liveSubscriptions, suppressions, intake, settings, now } = dependencies
  const closed = new AbortController()
  /** Workspaces with new entries, and since when they wait. */
  const waiting = new Map<string, number>()
  const known = new Set<string>()
  const lagMs = () => performance.now() - ([...waiting.values()][0] ?? performance.now())
  const paced = createPace({ share, lagMs, signal: closed.signal })
  let isActive = false

  async function send(event: FeedEvent, known: KnownSubscription, isSuppressed: boolean) {
    const { subscription } = known
    const { workspaceId, subscriptionId } = subscription
    const key = `${workspaceId} event ${event.entry.source} ${subscriptionId}`
    const { isTooLarge: _, ...delivery } = newDelivery({
      content: contentOf(event, subscription),
      subscription,
      operation: { key, inputHash: hashInput({ key }) },
      at: new Date(now()),
      isSuppressed,
      settings,
    })
    await intake.add(delivery, known)
  }

  /**
   * Sends the events of the entries to the destinations that want them. Then stores the position of
   * each destination that has not failed.
   */
  async function sendAll(workspaceId: string, entries: FeedEntry[], followers: Follower[], hookIds: Set<string>) {
    const found = await Promise.all(followers.map(({ subscriptionId }) => liveSubscriptions.find(subscriptionId)))
    const destinations = found.filter((known) => known !== undefined)
    const types = new Set(destinations.flatMap(({ subscription: { policy = defaultPolicy } }) => policy.types))
    const events = await withContent(
      workspaceId,
      entries.filter(({ type }) => types.has(type)),
    )
    const suppressed = await suppressions.suppressedLeads(events.flatMap(({ lead }) => lead ?? []))
    const outcomes = await Promise.allSettled(
      destinations.map(async (known) => {
        const wanted = events.filter((event) => isWanted(event, known.subscription, hookIds))
        await Promise.all(wanted.map((event) => send(event, known, suppressed.has(event.lead?.leadId ?? ''))))
        return known.subscription.subscriptionId
      }),
    )
    const failed = outcomes.filter(({ status }) => status === 'rejected')
    const sent = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []))
    await followerStore.markFollowed(sent, entries.at(-1)!.number)
    for (const { reason } of failed as PromiseRejectedResult[]) throw reason
  }

  /**
   * Sends the rest of the feed to destinations of a workspace. All of them must have received the
   * feed up to the same entry.
   */
  async function bringUp(workspaceId: string, followers: Follower[], hookIds: Set<string>) {
    for (let place = followers[0]!.followedTo; !closed.signal.aborted; ) {
      const entries = await store.after(workspaceId, place, entriesPerRead)
      const last = entries.at(-1)
      if (!last) return
      await paced(() => sendAll(workspaceId, entries, followers, hookIds))
      place = last.number
    }
  }

  /**
   * Sends the rest of the feed of each workspace to its destinations. A failure for some
   * destinations does not stop the others.
   */
  async function bringUpAll(workspaceIds: string[]) {
    const failures: unknown[] = []
    const note = (error: unknown) => void failures.push(error)
    for (const workspaceId of workspaceIds) {
      const followers = await followerStore.followers(workspaceId)
      const hookIds = new Set(followers.flatMap((each) => (each.isHook ? each.subscriptionId : [])))
      for (const group of Map.groupBy(followers, ({ followedTo }) => followedTo).values())
        await bringUp(workspaceId, group, hookIds).catch(note)
    }
    if (failures.length > 0) throw failures[0]
  }

  const flushing = createSingleFlight(
    () => waiting.size > 0 && !closed.signal.aborted,
    async () => {
      const batch = [...waiting.keys()]
      waiting.clear()
      const followed = await Promise.all(batch.map(liveSubscriptions.isFollowed))
      for (const [index, workspaceId] of batch.entries()) {
        known.delete(workspaceId)
        if (followed[index] && known.size < maxWaiting) known.add(workspaceId)
      }
      await bringUpAll(batch.filter((_, index) => followed[index]))
    },
    { paceMs },
  )

  return {
    added(workspaceId) {
      if (waiting.size < maxWaiting && !waiting.has(workspaceId)) waiting.set(workspaceId, performance.now())
      if (isActive) flushing.run().catch(() => {}) // `catchUp` creates the deliveries and logs the error.
    },

    flush() {
      isActive = true
      return flushing.run()
    },

    async catchUp() {
      for (let after = ''; !closed.signal.aborted; ) {
        const found = await followerStore.nextFollowed(after, workspacesPerRead)
        await bringUpAll(found)
        if (found.length < workspacesPerRead) return
        after = found.at(-1)!
      }
    },

    isFollowed: (workspaceId) => (workspaceId === undefined ? known.size > 0 : known.has(workspaceId)),
    lagMs,
    close: () => closed.abort(),
  }
}

function isWanted(
  { entry, lead }: FeedEvent,
  { policy = defaultPolicy, ...to }: LeadSubscription,
  hookIds: Set<string>,
) {
  const { type, disabled, delivery } = entry
  if (!policy.types.includes(type)) return false
  if (!isHook(to)) return lead !== undefined && coversLead(policy, lead)
  // Hooks get no events about hooks. Otherwise their failures would cause further events.
  return !hookIds.has(disabled?.subscriptionId ?? delivery?.subscriptionId ?? '')
}
