import { createFollower, type Follower } from '../concurrency/follower.ts'
import { createPace } from '../concurrency/pace.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { isHandedOff } from '../deliveries/intake.ts'
import { enterForm } from '../deliveries/lead-capture.ts'
import type { DeliveryDocument } from '../deliveries/model.ts'
import { toSubscription } from '../deliveries/subscription-model.ts'
import type { Marked } from '../leads/leads.ts'
import type { LeadDocument } from '../leads/model.ts'
import { committed } from '../mongodb/committed.ts'
import { notDeleted } from '../mongodb/not-erasing.ts'
import { idsOf } from '../mongodb/with-id.ts'
import { addToFeed, addToFeeds } from './event-fan-out.ts'
import { type FeedDelivery, type NewFeedEntry, noticeEntries } from './model.ts'

type UnannouncedLead = Pick<
  LeadDocument,
  '_id' | 'workspaceId' | 'createdAt' | 'conversationId' | 'formSubmissionId' | 'sessionId' | 'erasing'
>
type UnannouncedDelivery = Omit<DeliveryDocument, 'body'>

const unannounced = { unannounced: true } as const
const leadFields = {
  ...committed,
  projection: { workspaceId: 1, createdAt: 1, conversationId: 1, formSubmissionId: 1, sessionId: 1, erasing: 1 },
}

/**
 * Adds the events of leads, deliveries and subscriptions that a write has marked. The capture of a lead
 * comes before the ends of its deliveries, and these before their hand-off. Any process may add them, even
 * twice.
 */
export const leadFeedOf = perCore((core) => {
  const { leads, deliveries, leadSubscriptions } = core.db
  const { signal } = core.closing
  const shared = { batch: 100, paced: createPace({ share: 1 / 5, signal }), signal, now: core.now }
  const followers = {
    leads: createFollower({
      ...shared,
      read: (limit) => leads.find(unannounced, { ...leadFields, limit }).toArray(),
      handle: (found) => announceLeads(core, found),
      since: ({ createdAt }) => createdAt,
    }),
    deliveries: createFollower({
      ...shared,
      read: (limit): Promise<UnannouncedDelivery[]> =>
        deliveries.find(unannounced, { ...committed, projection: { body: 0 }, limit }).toArray(),
      handle: (found) => announceDeliveries(core, found),
      since: ({ updatedAt }) => updatedAt,
    }),
    subscriptions: createFollower({
      ...shared,
      read: (limit) => leadSubscriptions.find({ 'notices.at': { $exists: true }, ...notDeleted }, { limit }).toArray(),
      async handle(found) {
        for (const each of found) {
          const { notices = [] } = each
          await addToFeed(core, each.workspaceId, noticeEntries(toSubscription(each)))
          const noticeId = { $in: notices.map((notice) => notice.noticeId) }
          await leadSubscriptions.updateOne({ _id: each._id }, { $pull: { notices: { noticeId } } })
        }
      },
      since: ({ notices, updatedAt }) => notices?.[0]?.at ?? updatedAt,
    }),
  } satisfies Record<Marked, Follower>
  return {
    followers,
    lagMs: () => Math.max(...Object.values(followers).map((follower) => follower.lagMs())),
  }
})

async function announceLeads(core: Core, found: UnannouncedLead[]) {
  for (const { _id: leadId, ...lead } of found) if (!lead.erasing) await enterForm(core, { leadId, ...lead })
  await addToFeeds(
    core,
    found.map(({ _id: leadId, workspaceId, createdAt: occurredAt }) => ({
      workspaceId,
      entries: [{ source: `${leadId} captured`, type: 'lead.captured', occurredAt, leadId }],
    })),
  )
  if (found.length > 0) await core.db.leads.updateMany({ _id: { $in: idsOf(found) } }, { $unset: { unannounced: '' } })
}

async function announceDeliveries(core: Core, found: UnannouncedDelivery[]) {
  const leadIds = [...new Set(found.flatMap(({ leadId }) => leadId ?? []))]
  await announceLeads(core, await core.db.leads.find({ _id: { $in: leadIds }, ...unannounced }, leadFields).toArray())
  const ended = found.map((read) => ({ read, workspaceId: read.workspaceId, entries: endsOf(read) }))
  await addToFeeds(core, ended)
  const at = dateOf(core)
  await markAnnounced(
    core,
    ended.map(({ read, entries }) => {
      const { workflowId, delivery } = entries.find(({ type }) => type === 'workflow.handoff') ?? {}
      return { read, handoff: workflowId && delivery ? { workflowId, outcome: delivery.outcome, at } : undefined }
    }),
  )
}

/** Changes nothing of a delivery that has changed since it was read. */
export async function markAnnounced(
  { db }: Core,
  announced: { read: UnannouncedDelivery; handoff: DeliveryDocument['handoff'] }[],
) {
  if (announced.length === 0) return
  // One more write costs the database several times as much as one more document in it.
  const equal = Map.groupBy(announced, ({ read, handoff }) =>
    [read.status, read.attempts.length, handoff?.outcome, handoff?.workflowId].join(' '),
  )
  await db.deliveries.bulkWrite(
    [...equal.values()].map((group) => {
      const [{ read, handoff }] = group as [(typeof announced)[number]]
      const { status, attempts } = read
      return {
        updateMany: {
          filter: { _id: { $in: group.map((each) => each.read._id) }, status, attempts: { $size: attempts.length } },
          update: {
            $set: { announcedAttempts: attempts.length, ...(handoff && { handoff }) },
            $unset: { unannounced: '' as const },
          },
        },
      }
    }),
    { ordered: false },
  )
}

const outcomes = { accepted: 'accepted', failed: 'failed', dead_lettered: 'failed' } as const

/** Returns the entries of ends that are not announced, and of the hand-off that an end causes. */
function endsOf(read: UnannouncedDelivery): NewFeedEntry[] {
  const { _id: deliveryId, subscriptionId, leadId, attempts, announcedAttempts = 0, workflow, handoff } = read
  // Otherwise each delivered event would cause another event.
  if (!isHandedOff(read)) return []
  const ends = attempts.flatMap(({ attemptId, outcome, updatedAt: occurredAt }, index) => {
    // An attempt of a suppressed person may have no outcome.
    const status = outcome?.status ?? (index === attempts.length - 1 ? read.status : undefined)
    const result = outcomes[status as keyof typeof outcomes]
    const delivery: FeedDelivery = { subscriptionId, deliveryId, attemptId, outcome: result }
    return result ? [{ index, end: { occurredAt, leadId, delivery } }] : []
  })
  const entries = ends
    .filter(({ index }) => index >= announcedAttempts)
    .map(({ end }): NewFeedEntry => {
      const type = end.delivery.outcome === 'accepted' ? 'lead.delivered' : 'lead.delivery-failed'
      return { source: `${deliveryId} ${end.delivery.attemptId}`, type, ...end }
    })
  const causing = ends.find(({ end }) => [end.delivery.outcome, 'ended'].includes(workflow?.when ?? ''))
  if (causing && workflow && !handoff) {
    const { workflowId } = workflow
    entries.push({ source: `${deliveryId} handoff`, type: 'workflow.handoff', ...causing.end, workflowId })
  }
  return entries
}
