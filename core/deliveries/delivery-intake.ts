import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { activeContext, batchOrigin, type Context, inSpan, SpanKind } from '../../platform/observability/tracing.ts'
import type { DeliveryStore } from '../delivery-stores/delivery-store.ts'
import type { NewDelivery } from '../delivery-stores/model.ts'
import type { KnownSubscription } from '../destinations/live-subscriptions.ts'
import type { CoreMetrics } from '../metrics.ts'
import type { DeliveryDispatch, JoinedWorker } from './delivery-dispatch.ts'
import type { ClaimedDelivery, ReadyRequests } from './webhook-requests.ts'

export interface DeliveryIntake {
  /**
   * Inserts a new delivery. Returns false for a duplicate operation. If a worker with a stream on
   * this core has room, the insert also claims the delivery for that worker, and the worker gets it
   * at once. Otherwise the delivery is queued, and all cores are told.
   */
  add(delivery: NewDelivery, by: KnownSubscription): Promise<boolean>
}

interface Arrival {
  delivery: NewDelivery
  by: KnownSubscription
  origin: Context
}

/** A new delivery and, if a worker has room for it, the request for that worker. */
interface Prepared {
  document: NewDelivery
  given?: { worker: JoinedWorker; request: ClaimedDelivery }
}

export function createDeliveryIntake(dependencies: {
  store: Pick<DeliveryStore, 'insertEach'>
  dispatch: Pick<DeliveryDispatch, 'reserve'>
  requests: ReadyRequests
  /** Tells all cores that a delivery may be due. */
  announce: () => void
  metrics: Pick<CoreMetrics, 'claimedDeliveries'>
  settings: { leaseMs: number }
  now: () => number
}): DeliveryIntake {
  const { store, dispatch, requests, announce, metrics, settings, now } = dependencies

  async function insertAll(arrivals: Arrival[]): Promise<PromiseSettledResult<boolean>[]> {
    const at = new Date(now())
    const prepared = arrivals.map((arrival) => prepare(arrival, at))
    const documents = prepared.map(({ document }) => document)
    // If the call fails, some deliveries may be stored all the same. A worker takes them over when
    // their leases expire.
    const outcomes = await insert(arrivals, documents).catch((error: unknown) => {
      for (const { given } of prepared) given?.worker.room.free(given.request.destination)
      throw error
    })
    const kept = prepared.filter(({ given }, index) => {
      if (isInserted(outcomes[index])) return true
      given?.worker.room.free(given.request.destination)
      return false
    })
    const given = kept.flatMap((each) => each.given ?? [])
    metrics.claimedDeliveries.inc(given.length)
    for (const [worker, share] of Map.groupBy(given, (each) => each.worker)) {
      worker.send(share.map(({ request }) => request))
    }
    if (kept.some(({ document }) => document.status === 'pending')) announce()
    return outcomes
  }

  function insert(arrivals: Arrival[], documents: NewDelivery[]) {
    const origin = batchOrigin(arrivals.map((arrival) => arrival.origin))
    const attributes = { ...insertAttributes, 'db.operation.batch.size': documents.length }
    return inSpan('insert deliveries', { ...origin, kind: SpanKind.CLIENT, attributes }, () =>
      store.insertEach(documents),
    )
  }

  /** Claims the delivery for a worker with room for it, if there is one. */
  function prepare({ delivery, by }: Arrival, at: Date): Prepared {
    const { subscriptionId, body } = delivery
    // Only claims from the queue apply rate limits. So a delivery to a destination with a rate
    // limit is queued.
    if (delivery.status !== 'pending' || !body || by.subscription.maxPerSecond) return { document: delivery }
    const secrets = requests.secretsOf(by.subscription, at)
    const worker = secrets && dispatch.reserve(subscriptionId)
    if (!worker) return { document: delivery }
    const { claimId, workerId } = worker
    const request = requests.make({ ...delivery, body }, { claimId, subscription: by.subscription, secrets })
    const claim = { claimId, workerId, at, knownAt: by.readAt }
    const dueAt = new Date(at.getTime() + settings.leaseMs)
    return { document: { ...delivery, status: 'sending', claim, dueAt }, given: { worker, request } }
  }

  const batcher = createBatcher(insertAll)
  return { add: (delivery, by) => batcher.add({ delivery, by, origin: activeContext() }) }
}

const insertAttributes = {
  'db.system.name': 'mongodb',
  'db.collection.name': 'deliveries',
  'db.operation.name': 'insert',
}

const isInserted = (outcome: PromiseSettledResult<boolean> | undefined) =>
  outcome?.status === 'fulfilled' && outcome.value
