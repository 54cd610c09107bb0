import { setTimeout as delay } from 'node:timers/promises'
import { perCore } from '../core.ts'
import { isSuppressionList } from '../leads/suppressions.ts'
import { type Claimant, takeDeliveries } from './claims.ts'
import { liveSubscriptionsOf } from './live-subscriptions.ts'
import { deliveryWorkHint } from './queue.ts'
import type { ClaimedDelivery } from './webhook-requests.ts'

/** A worker whose stream is open on this core. */
export interface StreamingWorker extends Claimant {
  /** Whether the worker has sent something recently. Other workers get no deliveries. */
  isResponsive(): boolean
  /** Sends deliveries to the worker. If its stream has ended, returns them to the queue. */
  send(deliveries: ClaimedDelivery[]): void
  /** Makes the worker return the deliveries of these destinations that it has not begun to send. */
  recall(destinations: string[]): void
  /**
   * The claim under which new deliveries are created for the worker. Each delivery is created once, so this
   * claim never covers a delivery that was taken over.
   */
  claimId: string
}

/** Interval in milliseconds at which the queue is read while more is due than the workers take. */
const pollEveryMs = 1_000
/**
 * Interval in milliseconds at which the queue is read when nothing is due. It limits the delay after
 * a worker of another core has died, or an announcement is lost.
 */
const restEveryMs = 2_500
/**
 * Minimum time between two reads of the queue, in milliseconds. Room that is made in this time is
 * filled by one read.
 */
const readEveryMs = 10

/** Sends deliveries to the workers whose streams are open on this core. */
export const deliveryDispatchOf = perCore((core) => {
  const { bus, logger, now } = core
  const workers = new Set<StreamingWorker>()
  /** Whether deliveries were due after the last read. If so, new room is filled at once. */
  let isMoreDue = true
  let isWanted = false
  let isRunning = false
  let isClosed = false
  let isFailing = false
  let timer: NodeJS.Timeout | undefined
  let readAt = Number.NEGATIVE_INFINITY

  const byPlaces = () =>
    [...workers].filter(({ isResponsive }) => isResponsive()).toSorted((a, b) => b.room.places() - a.room.places())

  function wake() {
    isWanted = true
    if (isRunning || isClosed || workers.size === 0) return
    isRunning = true
    clearTimeout(timer)
    void run()
  }

  async function run() {
    let nextDueAt = Number.POSITIVE_INFINITY
    while (isWanted && !isClosed) {
      const pauseMs = readAt + readEveryMs - performance.now()
      if (pauseMs > 0) await delay(pauseMs)
      isWanted = false
      readAt = performance.now()
      nextDueAt = await fill().catch((error: Error) => {
        if (!isFailing && !isClosed)
          logger.warn({ reason: error.name }, 'claiming deliveries failed; retrying every second')
        isFailing = true
        return Number.POSITIVE_INFINITY
      })
    }
    isRunning = false
    const everyMs = isMoreDue || isFailing ? pollEveryMs : restEveryMs
    if (!isClosed) timer = setTimeout(wake, Math.max(1, Math.min(everyMs, nextDueAt - now())))
  }

  /** Fills the room of the workers. Returns the time at which the next delivery is due, if it is known. */
  async function fill() {
    let next = Number.POSITIVE_INFINITY
    isMoreDue = true
    for (const worker of byPlaces()) {
      if (worker.room.places() === 0) break
      const taken = await takeDeliveries(core, worker)
      if (taken.claimed.length > 0) {
        worker.send(taken.claimed)
        isWanted ||= taken.isMoreDue
      }
      next = Math.min(next, taken.nextDueAt)
      isMoreDue = taken.isMoreDue
      isFailing = false
      if (!isMoreDue) break
    }
    return next
  }

  /**
   * Recalls deliveries that workers have not begun to send, if their subscription or a suppression
   * list has changed. `ids` are the ids of changed objects of any kind.
   */
  function recall(ids: string[]) {
    const areAll = ids.some(isSuppressionList)
    for (const { room, recall } of workers) {
      const affected = areAll ? room.destinations() : ids.filter(room.has)
      if (affected.length > 0) recall(affected)
    }
  }

  // The cache of subscriptions drops what has changed before the queue is read again.
  liveSubscriptionsOf(core)
  bus.on('changed', (ids) => {
    recall(ids)
    if (ids.includes(deliveryWorkHint)) wake()
  })
  bus.on('gap', wake)

  return {
    /** Sends deliveries to the worker from now on. Returns the function that ends this. */
    join(worker: StreamingWorker) {
      workers.add(worker)
      wake()
      return () => void workers.delete(worker)
    },
    /**
     * Reserves room for a new delivery: at the worker with the most places. Returns undefined if no
     * worker has room. The caller must use the room or free it.
     */
    reserve: (destination: string) => byPlaces().find(({ room }) => room.reserve(destination)),
    /** The worker has room again. */
    roomMade() {
      if (isMoreDue) wake()
    },
    busyDestinations: () => [...new Set([...workers].flatMap(({ room }) => room.destinations()))],
    /** Afterwards no worker gets a delivery. */
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
})
