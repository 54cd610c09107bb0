import { createPace } from '../concurrency/pace.ts'
import { isHandedOff } from '../deliveries/new-delivery.ts'
import type { HandoffWhen } from '../destinations/handoff-model.ts'
import type { LeadSubscriptionStore } from '../destinations/lead-subscription-store.ts'
import type { LeadSubscription } from '../destinations/model.ts'
import type { Leads } from '../leads/leads.ts'
import type { LeadFeedStore, UnannouncedDelivery, UnannouncedLead } from './lead-feed-store.ts'
import { type AddToFeed, type FeedDelivery, type NewFeedEntry, noticeEntries } from './model.ts'

export interface LeadFeed {
  /** Adds the entries of changed leads, deliveries and subscriptions, until none is left. */
  announce(): Promise<void>
  /** Ends the work in progress after the current write. */
  close(): void
}

const batchSize = 100
const share = 1 / 5

/**
 * Adds the events of leads to the feeds. The capture of a lead comes before the ends of its
 * deliveries. A hand-off comes after the end of the delivery that caused it. Any process may add
 * these events, even twice.
 */
export function createLeadFeed({
  store,
  subscriptions,
  enterForm,
  add,
  now,
}: {
  store: LeadFeedStore
  subscriptions: Pick<LeadSubscriptionStore, 'withNotices' | 'removeNotices'>
  enterForm: Leads['enterForm']
  add: AddToFeed
  now: () => number
}): LeadFeed {
  const closed = new AbortController()
  const paced = createPace({ share, signal: closed.signal })

  async function announceLeads(found: UnannouncedLead[]) {
    for (const { _id: leadId, ...lead } of found) if (!lead.erasing) await enterForm({ leadId, ...lead })
    for (const [workspaceId, theirs] of Map.groupBy(found, (lead) => lead.workspaceId))
      await add(workspaceId, theirs.map(captureOf))
    await store.markLeads(found.map(({ _id }) => _id))
  }

  async function announceDeliveries(found: UnannouncedDelivery[]) {
    await announceLeads(await store.leadsOf([...new Set(found.flatMap(({ leadId }) => leadId ?? []))]))
    const ended = found.map((delivery) => ({ delivery, entries: endsOf(delivery), handoff: handoffOf(delivery) }))
    for (const [workspaceId, theirs] of Map.groupBy(ended, ({ delivery }) => delivery.workspaceId))
      await add(
        workspaceId,
        theirs.flatMap(({ entries, handoff }) => (handoff ? [...entries, handoff.entry] : entries)),
      )
    const at = new Date(now())
    await store.markDeliveries(
      ended.map(({ delivery, handoff }) => ({
        read: delivery,
        handoff: handoff && { workflowId: handoff.workflowId, outcome: handoff.outcome, at },
      })),
    )
  }

  async function announceNotices(found: LeadSubscription[]) {
    for (const each of found) {
      await add(each.workspaceId, noticeEntries(each))
      await subscriptions.removeNotices(each.subscriptionId, each.notices ?? [])
    }
  }

  /** Announces batches until fewer than a whole one is found. */
  async function all<T>(read: (limit: number) => Promise<T[]>, announce: (found: T[]) => Promise<void>) {
    for (let more = true; more && !closed.signal.aborted; ) {
      const found = await read(batchSize)
      if (found.length > 0) await paced(() => announce(found))
      more = found.length === batchSize
    }
  }

  return {
    async announce() {
      await all(store.leads, announceLeads)
      await all(store.deliveries, announceDeliveries)
      await all(subscriptions.withNotices, announceNotices)
    },
    close: () => closed.abort(),
  }
}

const captureOf = ({ _id, createdAt }: UnannouncedLead): NewFeedEntry => ({
  source: `${_id} captured`,
  type: 'lead.captured',
  occurredAt: createdAt,
  leadId: _id,
})

const outcomes = { accepted: 'accepted', failed: 'failed', dead_lettered: 'failed' } as const

/** Returns how each attempt ended that ended its delivery. */
function endings({ _id, subscriptionId, status, attempts, ...sent }: UnannouncedDelivery) {
  // Only the ends of deliveries of leads are events. Otherwise each delivered event would cause
  // another event.
  if (!isHandedOff(sent)) return []
  return attempts.flatMap(({ attemptId, outcome, updatedAt }, index) => {
    // An attempt of a suppressed person may end without an outcome of its own.
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

/** Returns the hand-off of a delivery that has not been handed off, if one of its ends causes it. */
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
