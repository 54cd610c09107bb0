import type { Logger } from 'pino'
import { readAtScrape } from '../../observability/metrics.ts'
import { createRecurring, type Recurring } from '../concurrency/recurring.ts'
import type { CoreConfig } from '../config.ts'
import type { ConversationAccess } from '../conversations/conversation-access.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import type { Wakeups } from '../log/wakeups.ts'
import type { CoreMetrics } from '../metrics.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import type { Database } from '../store/database.ts'
import { createDeliveryStore } from '../store/deliveries.ts'
import { createDeliveryHoldStore } from '../store/delivery-holds.ts'
import { createDeliveryQueue } from '../store/delivery-queue.ts'
import { createLeadSubscriptionStore } from '../store/lead-subscriptions.ts'
import { createLeadStore } from '../store/leads.ts'
import type { WorkspaceStore } from '../store/workspaces.ts'
import { createDeliveries, type Deliveries } from './deliveries.ts'
import { type ClaimRequest, createDeliveryClaims, type DeliveryClaims } from './delivery-claims.ts'
import { createDeliveryHolds, type DeliveryHolds } from './delivery-holds.ts'
import { createDeliveryIntake } from './delivery-intake.ts'
import { createDeliveryResults, type DeliveryResults } from './delivery-results.ts'
import { createDeliveryVerdicts, type DeliveryVerdicts } from './delivery-verdicts.ts'
import { createDeliveryWork, type DeliveryWork } from './delivery-work.ts'
import { createLeadFanOut, type LeadFanOut } from './lead-fan-out.ts'
import { createLeadSubscriptions, type JudgeDestination, type LeadSubscriptions } from './lead-subscriptions.ts'
import { createLeads, type Leads } from './leads.ts'
import { createLiveSubscriptions, type LiveSubscriptions } from './live-subscriptions.ts'
import { type ClaimedDelivery, createReadyRequests } from './ready-requests.ts'

export interface DeliveryParts {
  leads: Leads
  leadFanOut: LeadFanOut
  leadSubscriptions: LeadSubscriptions
  deliveries: Deliveries
  deliveryClaims: DeliveryClaims
  deliveryResults: DeliveryResults
  deliveryHolds: DeliveryHolds
  deliveryVerdicts: DeliveryVerdicts
  deliveryWork: DeliveryWork<ClaimedDelivery[], ClaimRequest>
  liveSubscriptions: LiveSubscriptions
  chores: Recurring[]
}

export interface DeliveryPartsDependencies {
  config: CoreConfig
  collections: Database['collections']
  workspaceStore: WorkspaceStore
  conversationAccess: ConversationAccess
  access: VisitorAccess
  secretBox: SecretBox
  wakeups: Pick<Wakeups, 'stateChanged' | 'isCurrent'>
  judgeDestination: JudgeDestination
  metrics: CoreMetrics
  logger: Logger
  now: () => number
  random: () => number
}

/** What the cores wake each other with when there is something to deliver. */
export const deliveryWorkHint = 'lead-deliveries'

/** How often deliveries are made to agree with subscriptions and leads, where a process died in between, in milliseconds. */
const reconcileEveryMs = 5000
const dueCountedMax = 1000

/** What a lead goes through, from its capture to its destination. */
export function createDeliveryParts(dependencies: DeliveryPartsDependencies): DeliveryParts {
  const { config, collections, wakeups, secretBox, metrics, logger, now, random } = dependencies
  const leadStore = createLeadStore(collections)
  const subscriptionStore = createLeadSubscriptionStore(collections)
  const deliveryStore = createDeliveryStore(collections)
  const holdStore = createDeliveryHoldStore(collections)
  const queue = createDeliveryQueue(collections)
  const liveSubscriptions = createLiveSubscriptions({ store: subscriptionStore, wakeups, now })
  const deliveryWork: DeliveryWork<ClaimedDelivery[], ClaimRequest> = createDeliveryWork(now)
  const requests = createReadyRequests({ secretBox, logger, now })
  const retentionDays = config.DELIVERY_RETENTION_DAYS
  const settings = { bodyMaxBytes: config.WEBHOOK_BODY_MAX_BYTES, retentionDays }
  const leaseMs = config.DELIVERY_LEASE_MS

  // Some index keys of the queue, however long it is.
  readAtScrape([metrics.deliveriesDue, metrics.oldestDueAge], async () => {
    const due = (await queue.upcoming(dueCountedMax)).filter(({ dueAt }) => dueAt.getTime() <= now())
    const [oldest] = due
    return [due.length, oldest === undefined ? 0 : (now() - oldest.dueAt.getTime()) / 1000]
  })

  /** A hint, also to this process itself: losing one costs a second. */
  function announce() {
    wakeups
      .stateChanged(deliveryWorkHint)
      .catch((error: Error) => logger.warn({ reason: error.name }, 'wake-up not written'))
  }

  const holds = createDeliveryHolds({ store: holdStore, subscriptions: subscriptionStore, announce, now })
  const verdicts = createDeliveryVerdicts({
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

  /** Each for itself: what one of them cannot do must not keep the others from it. */
  const chores = [
    { name: 'sending leads on', run: fanOut.finish },
    { name: 'judging subscriptions', run: verdicts.executeForgotten },
    { name: 'holding and releasing deliveries', run: holds.reconcile },
  ]

  return {
    leads: createLeads({ ...dependencies, store: leadStore, fanOut }),
    leadFanOut: fanOut,
    leadSubscriptions: createLeadSubscriptions({
      ...dependencies,
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
      verdicts,
      announce,
      metrics,
      logger,
      settings: { retentionDays },
      now,
      random,
    }),
    deliveryHolds: holds,
    deliveryVerdicts: verdicts,
    deliveryWork,
    liveSubscriptions,
    chores: chores.map((chore) => createRecurring({ ...chore, everyMs: reconcileEveryMs, logger })),
  }
}
