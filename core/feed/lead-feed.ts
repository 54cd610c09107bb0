import { createFollower, type Follower } from '../concurrency/follower.ts'
import { createPace } from '../concurrency/pace.ts'
import { type Core, perCore } from '../core.ts'
import { isHandedOff } from '../deliveries/intake.ts'
import { enterForm } from '../deliveries/lead-capture.ts'
import { notDeleted } from '../deliveries/live-subscriptions.ts'
import type { DeliveryDocument } from '../deliveries/model.ts'
import { type HandoffWhen, toSubscription } from '../deliveries/subscription-model.ts'
import type { Marked } from '../leads/leads.ts'
import type { LeadDocument } from '../leads/model.ts'
import { addToFeed } from './event-fan-out.ts'
import { type FeedDelivery, type NewFeedEntry, noticeEntries } from './model.ts'

type UnannouncedLead = Pick<
  LeadDocument,
  '_id' | 'workspaceId' | 'createdAt' | 'conversationId' | 'formSubmissionId' | 'sessionId' | 'erasing'
>
type UnannouncedDelivery = Omit<DeliveryDocument, 'body'>

const batch = 100
const share = 1 / 5
const unannounced = { unannounced: true } as const
const committed = { readConcern: { level: 'majority' } } as const
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
  const closed = new AbortController()
  const { signal } = closed
  const shared = { batch, paced: createPace({ share, signal }), signal, now: core.now }
  const followers = {
    leads: createFollower({
      ...shared,
      read: (limit) => leads.find(unannounced, leadFields).limit(limit).toArray(),
      handle: (found) => announceLeads(core, found),
      since: ({ createdAt }) => createdAt,
    }),
    deliveries: createFollower({
      ...shared,
      read: (limit): Promise<UnannouncedDelivery[]> =>
        deliveries
          .find(unannounced, { ...committed, projection: { body: 0 } })
          .limit(limit)
          .toArray(),
      handle: (found) => announceDeliveries(core, found),
      since: ({ updatedAt }) => updatedAt,
    }),
    subscriptions: createFollower({
      ...shared,
      read: (limit) =>
        leadSubscriptions
          .find({ 'notices.at': { $exists: true }, ...notDeleted })
          .limit(limit)
          .toArray(),
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
    close: () => closed.abort(),
  }
})

async function announceLeads(core: Core, found: UnannouncedLead[]) {
  for (const { _id: leadId, ...lead } of found) if (!lead.erasing) await enterForm(core, { leadId, ...lead })
  for (const [workspaceId, theirs] of Map.groupBy(found, (lead) => lead.workspaceId))
    await addToFeed(core, workspaceId, theirs.map(captureOf))
  const ids = found.map(({ _id }) => _id)
  if (ids.length > 0) await core.db.leads.updateMany({ _id: { $in: ids } }, { $unset: { unannounced: '' } })
}

async function announceDeliveries(core: Core, found: UnannouncedDelivery[]) {
  const leadIds = [...new Set(found.flatMap(({ leadId }) => leadId ?? []))]
  await announceLeads(core, await core.db.leads.find({ _id: { $in: leadIds }, ...unannounced }, leadFields).toArray())
  const ended = found.map((delivery) => ({ delivery, entries: endsOf(delivery), handoff: handoffOf(delivery) }))
  for (const [workspaceId, theirs] of Map.groupBy(ended, ({ delivery }) => delivery.workspaceId))
    await addToFeed(
      core,
      workspaceId,
      theirs.flatMap(({ entries, handoff }) => (handoff ? [...entries, handoff.entry] : entries)),
    )
  const at = new Date(core.now())
  await markAnnounced(
    core,
    ended.map(({ delivery, handoff }) => ({
      read: delivery,
      handoff: handoff && { workflowId: handoff.workflowId, outcome: handoff.outcome, at },
    })),
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

const captureOf = ({ _id, createdAt }: UnannouncedLead): NewFeedEntry => ({
  source: `${_id} captured`,
  type: 'lead.captured',
  occurredAt: createdAt,
  leadId: _id,
})

const outcomes = { accepted: 'accepted', failed: 'failed', dead_lettered: 'failed' } as const

function endings({ _id, subscriptionId, status, attempts, ...sent }: UnannouncedDelivery) {
  // Otherwise each delivered event would cause another event.
  if (!isHandedOff(sent)) return []
  return attempts.flatMap(({ attemptId, outcome, updatedAt }, index) => {
    // An attempt of a suppressed person may have no outcome.
    const end = outcome?.status ?? (index === attempts.length - 1 ? status : undefined)
    const result = outcomes[end as keyof typeof outcomes]
    if (result === undefined) return []
    const delivery: FeedDelivery = { subscriptionId, deliveryId: _id, attemptId, outcome: result }
    return [{ index, at: updatedAt, delivery }]
  })
}

function endsOf(delivery: UnannouncedDelivery): NewFeedEntry[] {
  return endings(delivery)
    .filter(({ index }) => index >= (delivery.announcedAttempts ?? 0))
    .map(({ at, delivery: end }) => ({
      source: `${end.deliveryId} ${end.attemptId}`,
      type: end.outcome === 'accepted' ? ('lead.delivered' as const) : ('lead.delivery-failed' as const),
      occurredAt: at,
      leadId: delivery.leadId,
      delivery: end,
    }))
}

const handsOff = (when: HandoffWhen, outcome: string) => when === 'ended' || when === outcome

function handoffOf(delivery: UnannouncedDelivery) {
  const { workflow, handoff, leadId } = delivery
  if (!workflow || handoff) return undefined
  const end = endings(delivery).find((each) => handsOff(workflow.when, each.delivery.outcome))
  if (!end) return undefined
  const { workflowId } = workflow
  const entry: NewFeedEntry = {
    source: `${end.delivery.deliveryId} handoff`,
    type: 'workflow.handoff',
    occurredAt: end.at,
    leadId,
    delivery: end.delivery,
    workflowId,
  }
  return { entry, workflowId, outcome: end.delivery.outcome }
}
