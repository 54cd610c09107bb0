import { readAtScrape } from '../../platform/observability/metrics.ts'
import { createJob, type Job } from '../concurrency/job.ts'
import type { ConversationService } from '../conversations/service.ts'
import type { CoreKit } from '../kit.ts'
import { createLeadFanOut, type LeadFanOut } from '../leads/lead-fan-out.ts'
import { createLeads, type Leads } from '../leads/leads.ts'
import type { LogService } from '../log/service.ts'
import type { VisitorService } from '../visitors/service.ts'
import { createDeliveries, type Deliveries } from './deliveries.ts'
import { type ClaimRequest, createDeliveryClaims, type DeliveryClaims } from './delivery-claims.ts'
import { createDeliveryHolds, type DeliveryHolds } from './delivery-holds.ts'
import { createDeliveryIntake } from './delivery-intake.ts'
import { createDeliveryResults, type DeliveryResults } from './delivery-results.ts'
import { createDeliveryWork, type DeliveryWork } from './delivery-work.ts'
import { createLeadSubscriptions, type IsAllowedDestination, type LeadSubscriptions } from './lead-subscriptions.ts'
import { createLiveSubscriptions, type LiveSubscriptions } from './live-subscriptions.ts'
import { type ClaimedDelivery, createReadyRequests } from './ready-requests.ts'
import { createSubscriptionDisabling, type SubscriptionDisabling } from './subscription-disabling.ts'

/** Leads and their deliveries, from capture to destination. */
export interface DeliveryService {
  leads: Leads
  leadFanOut: LeadFanOut
  leadSubscriptions: LeadSubscriptions
  deliveries: Deliveries
  deliveryClaims: DeliveryClaims
  deliveryResults: DeliveryResults
  deliveryHolds: DeliveryHolds
  subscriptionDisabling: SubscriptionDisabling
  deliveryWork: DeliveryWork<ClaimedDelivery[], ClaimRequest>
  liveSubscriptions: LiveSubscriptions
  jobs: Job[]
  /** Wakes every waiting worker, so that their calls end. */
  close(): void
}

/** The hint by which cores wake each other when deliveries are due. */
export const deliveryWorkHint = 'lead-deliveries'

/** How often deliveries are reconciled with subscriptions and leads, in milliseconds. */
const reconcileEveryMs = 5000
const dueCountedMax = 1000

export function createDeliveryService(
  { config, stores, bus, secretBox, plannedIds, metrics, logger, now, random }: CoreKit,
  { wakeups }: LogService,
  { visitorAccess: access }: VisitorService,
  { conversationAccess }: ConversationService,
  isAllowedDestination: IsAllowedDestination,
): DeliveryService {
  const {
    leads: leadStore,
    leadSubscriptions: subscriptionStore,
    deliveries: deliveryStore,
    deliveryHolds: holdStore,
    deliveryQueue: queue,
    workspaces: workspaceStore,
  } = stores
  const liveSubscriptions = createLiveSubscriptions({ store: subscriptionStore, bus, wakeups, now })
  const deliveryWork: DeliveryWork<ClaimedDelivery[], ClaimRequest> = createDeliveryWork(now)
  const requests = createReadyRequests({ secretBox, logger, now })
  const retentionDays = config.DELIVERY_RETENTION_DAYS
  const settings = { bodyMaxBytes: config.WEBHOOK_BODY_MAX_BYTES, retentionDays }
  const leaseMs = config.DELIVERY_LEASE_MS

  bus.on('changed', (ids) => {
    if (ids.includes(deliveryWorkHint)) deliveryWork.announce()
  })
  bus.on('gap', deliveryWork.announce)

  // Reads a bounded number of index entries, whatever the length of the queue.
  readAtScrape([metrics.deliveriesDue, metrics.oldestDueAge], async () => {
    const due = (await queue.upcoming(dueCountedMax)).filter(({ dueAt }) => dueAt.getTime() <= now())
    const [oldest] = due
    return [due.length, oldest === undefined ? 0 : (now() - oldest.dueAt.getTime()) / 1000]
  })

  /** Sends a hint to all cores, this one included. A lost hint delays work by a second. */
  function announce() {
    wakeups
      .stateChanged(deliveryWorkHint)
      .catch((error: Error) =>
        logger.warn({ reason: error.name }, 'publishing the delivery hint failed; workers poll within a second'),
      )
  }

  const holds = createDeliveryHolds({ store: holdStore, subscriptions: subscriptionStore, announce, now })
  const subscriptionDisabling = createSubscriptionDisabling({
    store: holdStore,
    subscriptions: subscriptionStore,
    liveSubscriptions,
    holds,
    now,
  })
  const intake = createDeliveryIntake({
    store: deliveryStore,
    queue,
    work: deliveryWork,
    requests,
    announce,
    logger,
    settings: { leaseMs },
    now,
  })
  const fanOut = createLeadFanOut({
    leads: leadStore,
    intake,
    subscriptions: subscriptionStore,
    liveSubscriptions,
    logger,
    settings,
    now,
  })

  // One job each, so that a failure of one does not stop the others.
  const jobs = [
    { name: 'finish lead fan-out', run: fanOut.finish },
    { name: 'disable subscriptions', run: subscriptionDisabling.applyPending },
    { name: 'hold and release deliveries', run: holds.reconcile },
  ]

  return {
    leads: createLeads({ store: leadStore, fanOut, workspaceStore, conversationAccess, access, plannedIds, now }),
    leadFanOut: fanOut,
    leadSubscriptions: createLeadSubscriptions({
      workspaceStore,
      secretBox,
      plannedIds,
      isAllowedDestination,
      now,
      store: subscriptionStore,
      deliveries: deliveryStore,
      liveSubscriptions,
      holds,
    }),
    deliveries: createDeliveries({
      store: deliveryStore,
      intake,
      leads: leadStore,
      liveSubscriptions,
      announce,
      settings,
      now,
    }),
    deliveryClaims: createDeliveryClaims({
      queue,
      holds,
      work: deliveryWork,
      requests,
      isCurrent: wakeups.isCurrent,
      metrics,
      settings: { leaseMs, deadlineMs: config.DELIVERY_ATTEMPT_DEADLINE_MS },
      now,
      random,
    }),
    deliveryResults: createDeliveryResults({
      queue,
      subscriptions: subscriptionStore,
      liveSubscriptions,
      subscriptionDisabling,
      announce,
      metrics,
      logger,
      settings: { retentionDays },
      now,
      random,
    }),
    deliveryHolds: holds,
    subscriptionDisabling,
    deliveryWork,
    liveSubscriptions,
    close: deliveryWork.close,
    jobs: jobs.map((job) => createJob({ ...job, everyMs: reconcileEveryMs, logger })),
  }
}
