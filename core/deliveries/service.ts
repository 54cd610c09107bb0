import { measureAtScrape } from '../../platform/observability/metrics.ts'
import { createJob } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import type { DeliveryHoldStore } from '../delivery-stores/delivery-hold-store.ts'
import type { DeliveryQueue } from '../delivery-stores/delivery-queue-store.ts'
import type { DeliveryRecoveryStore } from '../delivery-stores/delivery-recovery-store.ts'
import type { DeliveryStore } from '../delivery-stores/delivery-store.ts'
import type { IsAllowedDestination } from '../destinations/destination-check.ts'
import type { EventFollowerStore } from '../destinations/event-follower-store.ts'
import type { LeadSubscriptionStore } from '../destinations/lead-subscription-store.ts'
import { createLiveSubscriptions } from '../destinations/live-subscriptions.ts'
import type { LeadStore } from '../leads/lead-store.ts'
import type { SuppressionService } from '../leads/service.ts'
import type { WakeupService } from '../wakeups/service.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import { createDeliveries } from './deliveries.ts'
import { createDeliveryClaims } from './delivery-claims.ts'
import { createDeliveryDispatch } from './delivery-dispatch.ts'
import { createDeliveryHolds, createSubscriptionDisabling } from './delivery-holds.ts'
import { createDeliveryIntake } from './delivery-intake.ts'
import { createDeliveryRecoveries } from './delivery-recovery.ts'
import { createDeliveryResults } from './delivery-results.ts'
import type { DeliverySources } from './delivery-sources.ts'
import { createSuppressionGate } from './delivery-suppression.ts'
import { createDestinationHealth } from './destination-health.ts'
import { createLeadFanOut } from './lead-fan-out.ts'
import { createLeadSubscriptions } from './lead-subscriptions.ts'
import { createDestinationMeasurement, createQueueMeasurement } from './queue-measurement.ts'
import { createReadyRequests } from './webhook-requests.ts'

interface DeliveryStores {
  leads: LeadStore
  leadSubscriptions: LeadSubscriptionStore
  eventFollowers: EventFollowerStore
  deliveries: DeliveryStore
  deliveryHolds: DeliveryHoldStore
  deliveryRecoveries: DeliveryRecoveryStore
  deliveryQueue: DeliveryQueue
  workspaces: WorkspaceStore
}

/** Id that a wake-up between cores contains when deliveries may be due. */
const deliveryWorkHint = 'lead-deliveries'

/** Interval in milliseconds at which a core looks for what a crash has left. */
const reconcileEveryMs = 60_000
/** Time in milliseconds after which failed work is tried again. */
const retryMs = 5_000
const measureQueueEveryMs = 5_000
const measureDestinationsEveryMs = 30_000

/** Maximum size in bytes of a webhook body. */
const bodyMaxBytes = 65_536

export function createDeliveryService(
  { config, bus, secretBox, plannedIds, metrics, logger, now, random }: Core,
  stores: DeliveryStores,
  { wakeups }: WakeupService,
  { suppressions }: SuppressionService,
  sources: DeliverySources,
  isAllowedDestination: IsAllowedDestination,
  endOfFeed: (workspaceId: string) => Promise<number>,
) {
  const {
    leads: leadStore,
    leadSubscriptions: subscriptionStore,
    deliveries: deliveryStore,
    deliveryHolds: holdStore,
    deliveryQueue: queue,
    workspaces: workspaceStore,
  } = stores
  const liveSubscriptions = createLiveSubscriptions({
    store: subscriptionStore,
    followerStore: stores.eventFollowers,
    bus,
    wakeups,
    now,
  })
  const requests = createReadyRequests({ secretBox, logger, now })
  const retentionDays = config.DELIVERY_RETENTION_DAYS
  const settings = { bodyMaxBytes, retentionDays }
  const leaseMs = config.DELIVERY_LEASE_MS

  /**
   * Sends a wake-up to all cores, including this one, because deliveries may be due. If the wake-up
   * is lost, work starts some seconds later.
   */
  function announce() {
    wakeups
      .hint(deliveryWorkHint)
      .catch((error: Error) =>
        logger.warn(
          { reason: error.name },
          'sending the wake-up for due deliveries failed; workers poll within seconds',
        ),
      )
  }

  bus.on('changed', (ids) => {
    deliveryDispatch.recall(ids)
    if (ids.includes(deliveryWorkHint)) deliveryDispatch.announce()
  })
  bus.on('gap', () => deliveryDispatch.announce())

  const holds = createDeliveryHolds({ store: holdStore, subscriptions: subscriptionStore, announce, logger, now })
  const subscriptionDisabling = createSubscriptionDisabling({
    store: holdStore,
    subscriptions: subscriptionStore,
    liveSubscriptions,
    holds,
    now,
  })
  const withoutSuppressed = createSuppressionGate({ queue, leads: leadStore, suppressions, metrics, settings })
  const deliveryClaims = createDeliveryClaims({
    sendable: async (taken, claimId, at) => withoutSuppressed(await sources.sendable(taken, claimId, at), claimId, at),
    queue,
    holds,
    requests,
    metrics,
    settings: { leaseMs, deadlineMs: config.DELIVERY_ATTEMPT_DEADLINE_MS },
    now,
    random,
  })
  const deliveryDispatch = createDeliveryDispatch({ take: deliveryClaims.take, logger, now })
  const intake = createDeliveryIntake({
    store: deliveryStore,
    dispatch: deliveryDispatch,
    requests,
    sources,
    announce,
    metrics,
    settings: { leaseMs },
    now,
  })
  const fanOut = createLeadFanOut({
    suppressions,
    leads: leadStore,
    intake,
    subscriptions: subscriptionStore,
    liveSubscriptions,
    bus,
    logger,
    settings,
    now,
  })

  const deliveryRecoveries = createDeliveryRecoveries({
    store: stores.deliveryRecoveries,
    subscriptions: subscriptionStore,
    announce,
    bus,
    now,
  })

  const measureQueue = createQueueMeasurement({
    queue,
    holds: holdStore,
    subscriptions: subscriptionStore,
    busyDestinations: deliveryDispatch.busyDestinations,
    metrics,
    now,
  })

  const measureDestinations = createDestinationMeasurement({ subscriptions: subscriptionStore, metrics, now })
  measureAtScrape(metrics.disabledSubscriptions, measureDestinationsEveryMs, measureDestinations)
  measureAtScrape(metrics.deliveriesDue, measureQueueEveryMs, measureQueue)

  // Each task has its own job, so that a failure of one does not stop the others.
  const jobs = [
    { name: 'finish lead fan-out', run: fanOut.finish },
    { name: 'disable subscriptions', run: subscriptionDisabling.applyPending },
    { name: 'hold and release deliveries', run: holds.reconcile },
    { name: 'recover deliveries', run: deliveryRecoveries.proceed },
  ]

  return {
    measureQueue,
    measureDestinations,
    leadFanOut: fanOut,
    leadSubscriptions: createLeadSubscriptions({
      workspaceStore,
      secretBox,
      plannedIds,
      isAllowedDestination,
      endOfFeed,
      limits: { hooks: config.EVENT_HOOKS_MAX, leadSubscriptions: config.LEAD_SUBSCRIPTIONS_MAX },
      now,
      store: subscriptionStore,
      deliveries: deliveryStore,
      liveSubscriptions,
      holds: {
        ...holds,
        applyStatus: (subscriptionId) =>
          // A recovery waits while its subscription is disabled.
          holds.applyStatus(subscriptionId).finally(() => bus.emit('due', 'recover deliveries')),
      },
    }),
    deliveries: createDeliveries({
      suppressions,
      store: deliveryStore,
      intake,
      leads: leadStore,
      liveSubscriptions,
      announce,
      settings,
      now,
    }),
    deliveryClaims,
    deliveryDispatch,
    deliveryResults: createDeliveryResults({
      queue,
      health: createDestinationHealth({ subscriptions: subscriptionStore, liveSubscriptions, subscriptionDisabling }),
      subscriptionDisabling: {
        ...subscriptionDisabling,
        apply: (faults) =>
          subscriptionDisabling.apply(faults).catch((error: unknown) => {
            bus.emit('due', 'disable subscriptions', retryMs)
            throw error
          }),
      },
      announce,
      metrics,
      logger,
      settings: { retentionDays },
      now,
      random,
    }),
    deliveryHolds: holds,
    subscriptionDisabling,
    deliveryIntake: intake,
    deliverySettings: settings,
    deliveryRecoveries,
    liveSubscriptions,
    /** Afterwards no worker gets a delivery. */
    close() {
      deliveryDispatch.close()
      holds.close()
    },
    jobs: jobs.map((job) => createJob({ ...job, everyMs: reconcileEveryMs, logger })),
  }
}

export type DeliveryService = ReturnType<typeof createDeliveryService>
