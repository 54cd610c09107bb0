import type { Logger } from 'pino'
import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { activeContext, batchOrigin, type Context, inSpan, SpanKind } from '../../platform/observability/tracing.ts'
import type { ClaimRequest } from './delivery-claims.ts'
import type { DeliveryQueue } from './delivery-queue-store.ts'
import type { DeliveryStore } from './delivery-store.ts'
import type { DeliveryWork, Waiting } from './delivery-work.ts'
import type { KnownSubscription } from './live-subscriptions.ts'
import type { NewDelivery } from './model.ts'
import { bodiesMaxBytes, type ClaimedDelivery, newClaimId, type ReadyRequests } from './webhook-requests.ts'

export interface DeliveryIntake {
  /**
   * Inserts a new delivery. Returns false for a duplicate operation. If a worker with free capacity
   * is waiting on this core, the insert also claims the delivery for that worker. The worker then
   * gets the delivery at once. Otherwise the delivery is queued, and waiting workers on all cores
   * are woken.
   */
  add(delivery: NewDelivery, by: KnownSubscription): Promise<boolean>
}

interface Arrival {
  delivery: NewDelivery
  by: KnownSubscription
  origin: Context
}

/** New deliveries that are passed to one waiting worker under one claim. */
interface Handover {
  waiting: Waiting<ClaimedDelivery[], ClaimRequest>
  claimId: string
  given: { arrival: Arrival; request: ClaimedDelivery }[]
  bytes: number
}

export function createDeliveryIntake(dependencies: {
  store: Pick<DeliveryStore, 'insertEach'>
  queue: Pick<DeliveryQueue, 'releaseClaim'>
  work: Pick<DeliveryWork<ClaimedDelivery[], ClaimRequest>, 'takeWaiting'>
  requests: ReadyRequests
  /** Wakes waiting delivery workers. Called when a delivery may be due. */
  announce: () => void
  logger: Pick<Logger, 'warn'>
  settings: { leaseMs: number }
  now: () => number
}): DeliveryIntake {
  const { store, queue, work, requests, announce, logger, settings, now } = dependencies

  async function insertAll(arrivals: Arrival[]): Promise<PromiseSettledResult<boolean>[]> {
    const at = new Date(now())
    const handovers: Handover[] = []
    const documents = arrivals.map((arrival) => handOver(arrival, handovers, at) ?? arrival.delivery)
    const outcomes = await insert(arrivals, documents).catch((error: unknown) => {
      // Some deliveries may be stored despite the error. A worker takes them over when their lease
      // expires.
      for (const { waiting } of handovers) waiting.answer(undefined)
      throw error
    })
    const kept = new Set(arrivals.filter((_, index) => isInserted(outcomes[index])))
    for (const handover of handovers) answer(handover, kept)
    if (documents.some(({ status }, index) => status === 'pending' && isInserted(outcomes[index]))) announce()
    return outcomes
  }

  function insert(arrivals: Arrival[], documents: NewDelivery[]) {
    const origin = batchOrigin(arrivals.map((arrival) => arrival.origin))
    const attributes = { ...insertAttributes, 'db.operation.batch.size': documents.length }
    return inSpan('insert deliveries', { ...origin, kind: SpanKind.CLIENT, attributes }, () =>
      store.insertEach(documents),
    )
  }

  /**
   * Claims the delivery for a waiting worker and returns its document. Returns undefined if no
   * waiting worker has free capacity for it.
   */
  function handOver(arrival: Arrival, handovers: Handover[], at: Date): NewDelivery | undefined {
    const { delivery, by } = arrival
    const { subscriptionId, body } = delivery
    // Only claims from the queue apply rate limits. So a delivery to a destination with a rate
    // limit is queued.
    if (delivery.status !== 'pending' || !body || by.subscription.maxPerSecond) return undefined
    const secrets = requests.secretsOf(by.subscription, at)
    if (!secrets) return undefined
    const handover = handovers.find((each) => hasRoom(each, subscriptionId, body.length)) ?? take(subscriptionId)
    if (!handover) return undefined
    if (handover.given.length === 0) handovers.push(handover)
    const { claimId, waiting } = handover
    const request = requests.make({ ...delivery, body }, { claimId, subscription: by.subscription, secrets })
    handover.given.push({ arrival, request })
    handover.bytes += body.length
    return {
      ...delivery,
      status: 'sending',
      claim: { claimId, workerId: waiting.room.workerId, at, knownAt: by.readAt },
      dueAt: new Date(at.getTime() + settings.leaseMs),
    }
  }

  function take(destination: string): Handover | undefined {
    const waiting = work.takeWaiting((room) => (room.underWay.get(destination) ?? 0) < room.perDestination)
    return waiting && { waiting, claimId: newClaimId(), given: [], bytes: 0 }
  }

  function answer({ waiting, claimId, given }: Handover, kept: Set<Arrival>) {
    const ready = given.filter(({ arrival }) => kept.has(arrival)).map(({ request }) => request)
    if (ready.length === 0) return waiting.answer(undefined)
    if (!waiting.room.signal.aborted) return waiting.answer(ready)
    waiting.answer(undefined)
    // The worker disconnected, so nobody would send these deliveries.
    const ids = ready.map(({ deliveryId }) => deliveryId)
    queue
      .releaseClaim(ids, claimId, new Date(now()))
      .then(announce, (error: Error) =>
        logger.warn(
          { reason: error.name },
          'returning deliveries to the queue failed; they are retried when their lease expires',
        ),
      )
  }

  const batcher = createBatcher(insertAll)
  return { add: (delivery, by) => batcher.add({ delivery, by, origin: activeContext() }) }
}

function hasRoom({ waiting: { room }, given, bytes }: Handover, destination: string, more: number): boolean {
  const same = given.filter(({ request }) => request.destination === destination).length
  return (
    given.length < room.limit &&
    (room.underWay.get(destination) ?? 0) + same < room.perDestination &&
    bytes + more <= bodiesMaxBytes
  )
}

const insertAttributes = {
  'db.system.name': 'mongodb',
  'db.collection.name': 'deliveries',
  'db.operation.name': 'insert',
}

const isInserted = (outcome: PromiseSettledResult<boolean> | undefined) =>
  outcome?.status === 'fulfilled' && outcome.value
