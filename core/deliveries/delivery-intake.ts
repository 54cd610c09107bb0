import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { activeContext, batchOrigin, type Context, inSpan, SpanKind } from '../../platform/observability/tracing.ts'
import type { DeliveryStore } from '../delivery-stores/delivery-store.ts'
import type { NewDelivery } from '../delivery-stores/model.ts'
import type { KnownSubscription } from '../destinations/live-subscriptions.ts'
import type { LeadSubscription } from '../destinations/model.ts'
import type { CoreMetrics } from '../metrics.ts'
import type { DeliveryDispatch, JoinedWorker } from './delivery-dispatch.ts'
import type { DeliverySources } from './delivery-sources.ts'
import type { ReadyRequests, SigningSecrets } from './webhook-requests.ts'

export interface DeliveryIntake {
  /**
   * Inserts a new delivery. Returns false for a duplicate operation. If a worker with a stream on
   * this core has room, the insert also claims the delivery for that worker, and the worker gets it
   * at once. Otherwise the delivery is queued, and all cores are told. `conversationId` is the
   * conversation of its lead.
   */
  add(delivery: NewDelivery, by: KnownSubscription, conversationId?: string): Promise<boolean>
}

interface Arrival {
  delivery: NewDelivery
  by: KnownSubscription
  conversationId: string | undefined
  origin: Context
}

/** A new delivery and, if a worker has room for it, that worker with the secrets for the request. */
interface Prepared {
  document: NewDelivery
  conversationId: string | undefined
  given?: { worker: JoinedWorker; subscription: LeadSubscription; secrets: SigningSecrets }
}

export function createDeliveryIntake(dependencies: {
  store: Pick<DeliveryStore, 'insertEach'>
  dispatch: Pick<DeliveryDispatch, 'reserve'>
  requests: ReadyRequests
  sources: Pick<DeliverySources, 'sendable' | 'mayHaveChanged'>
  /** Tells all cores that a delivery may be due. */
  announce: () => void
  metrics: Pick<CoreMetrics, 'claimedDeliveries'>
  settings: { leaseMs: number }
  now: () => number
}): DeliveryIntake {
  const { store, dispatch, requests, sources, announce, metrics, settings, now } = dependencies

  async function insertAll(arrivals: Arrival[]): Promise<PromiseSettledResult<boolean>[]> {
    const at = new Date(now())
    const prepared = arrivals.map(
      (arrival): Prepared => ({ conversationId: arrival.conversationId, ...prepare(arrival, at) }),
    )
    const documents = prepared.map(({ document }) => document)
    // If the call fails, some deliveries may be stored all the same. A worker takes them over when
    // their leases expire.
    const outcomes = await insert(arrivals, documents).catch((error: unknown) => {
      for (const each of prepared) freeRoom(each)
      throw error
    })
    const kept = prepared.filter((each, index) => isInserted(outcomes[index]) || freeRoom(each))
    for (const [worker, share] of Map.groupBy(kept, ({ given }) => given?.worker)) await give(worker, share, at)
    if (kept.some(({ document }) => document.status === 'pending')) announce()
    return outcomes
  }

  function freeRoom({ document, given }: Prepared): false {
    given?.worker.room.free(document.subscriptionId)
    return false
  }

  /**
   * Sends the worker its deliveries that may be sent. Also checks messages without a worker, so that no
   * stored body keeps a withdrawn text. If the check fails, the deliveries wait until their leases
   * expire, and are checked again.
   */
  async function give(worker: JoinedWorker | undefined, share: Prepared[], at: Date) {
    const { checked = [], current = [] } = Object.groupBy(share, ({ document, conversationId }) =>
      sources.mayHaveChanged([document.leadId, conversationId]) ? 'checked' : 'current',
    )
    const found =
      checked.length === 0 ? [] : await sources.sendable(documentsOf(checked), worker?.claimId, at).catch(() => [])
    const bodies = new Map([...documentsOf(current), ...found].map(({ deliveryId, body }) => [deliveryId, body]))
    const ready = share.flatMap((each) => {
      const { document, given } = each
      const body = bodies.get(document.deliveryId)
      if (given && body) return requests.make({ ...document, body }, { claimId: given.worker.claimId, ...given })
      freeRoom(each)
      return []
    })
    metrics.claimedDeliveries.inc(ready.length)
    if (ready.length > 0) worker?.send(ready)
  }

  function insert(arrivals: Arrival[], documents: NewDelivery[]) {
    const origin = batchOrigin(arrivals.map((arrival) => arrival.origin))
    const attributes = { ...insertAttributes, 'db.operation.batch.size': documents.length }
    return inSpan('insert deliveries', { ...origin, kind: SpanKind.CLIENT, attributes }, () =>
      store.insertEach(documents),
    )
  }

  /** Claims the delivery for a worker with room for it, if there is one. */
  function prepare({ delivery, by }: Arrival, at: Date): Omit<Prepared, 'conversationId'> {
    const { subscriptionId, body } = delivery
    // Only claims from the queue apply rate limits. So a delivery to a destination with a rate
    // limit is queued.
    if (delivery.status !== 'pending' || !body || by.subscription.maxPerSecond) return { document: delivery }
    const secrets = requests.secretsOf(by.subscription, at)
    const worker = secrets && dispatch.reserve(subscriptionId)
    if (!worker) return { document: delivery }
    const { claimId, workerId } = worker
    const claim = { claimId, workerId, at, knownAt: by.readAt }
    const dueAt = new Date(at.getTime() + settings.leaseMs)
    return {
      document: { ...delivery, status: 'sending', claim, dueAt },
      given: { worker, subscription: by.subscription, secrets },
    }
  }

  const batcher = createBatcher(insertAll)
  return {
    add: (delivery, by, conversationId = delivery.conversationId) =>
      batcher.add({ delivery, by, conversationId, origin: activeContext() }),
  }
}

const insertAttributes = {
  'db.system.name': 'mongodb',
  'db.collection.name': 'deliveries',
  'db.operation.name': 'insert',
}

const documentsOf = (prepared: Prepared[]) => prepared.map(({ document }) => document)

const isInserted = (outcome: PromiseSettledResult<boolean> | undefined) =>
  outcome?.status === 'fulfilled' && outcome.value
