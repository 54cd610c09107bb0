import { setTimeout as delay } from 'node:timers/promises'
import { perCore } from '../core.ts'
import { logFailure } from '../errors.ts'
import { isSuppressionList } from '../leads/suppressions.ts'
import { type Claimant, takeDeliveries } from './claims.ts'
import { liveSubscriptionsOf } from './live-subscriptions.ts'
import { deliveryWorkHint } from './queue.ts'
import type { ClaimedDelivery } from './webhook-requests.ts'

export interface StreamingWorker extends Claimant {
  /** Whether the worker has sent something recently. Others get no deliveries. */
  isResponsive(): boolean
  /** Sends deliveries to the worker, or returns them to the queue if its stream has ended. */
  send(deliveries: ClaimedDelivery[]): void
  /** Makes the worker return what it has not begun to send to these destinations. */
  recall(destinations: string[]): void
  /** The claim of new deliveries. Each is created once, so it never covers one that was taken over. */
  claimId: string
}

/** Milliseconds between reads of the queue while more is due than the workers take. */
const pollEveryMs = 1_000
/** Milliseconds between reads while nothing is due. A lost announcement delays a delivery this long. */
const restEveryMs = 10_000
/** Minimum time between two reads in milliseconds. One read fills the room that is made in it. */
const readEveryMs = 10

export const deliveryDispatchOf = perCore((core) => {
  const { bus, logger, now } = core
  const { signal } = core.closing
  const workers = new Set<StreamingWorker>()
  /** Whether deliveries were due after the last read. If so, new room is filled at once. */
  let isMoreDue = true
  let isWanted = false
  let isRunning = false
  let isFailing = false
  let timer: NodeJS.Timeout | undefined
  let readAt = Number.NEGATIVE_INFINITY

  const byPlaces = () =>
    [...workers].filter(({ isResponsive }) => isResponsive()).toSorted((a, b) => b.room.places() - a.room.places())

  function wake() {
    isWanted = true
    if (isRunning || signal.aborted || workers.size === 0) return
    isRunning = true
    clearTimeout(timer)
    void run()
  }

  async function run() {
    let nextDueAt = Number.POSITIVE_INFINITY
    while (isWanted && !signal.aborted) {
      const pauseMs = readAt + readEveryMs - performance.now()
      if (pauseMs > 0) await delay(pauseMs)
      isWanted = false
      readAt = performance.now()
      nextDueAt = await fill().catch((error) => {
        if (!isFailing && !signal.aborted)
          logFailure(logger, 'claiming deliveries failed; retrying every second')(error)
        isFailing = true
        return Number.POSITIVE_INFINITY
      })
    }
    isRunning = false
    const everyMs = isMoreDue || isFailing ? pollEveryMs : restEveryMs
    if (!signal.aborted) timer = setTimeout(wake, Math.max(1, Math.min(everyMs, nextDueAt - now())))
  }

  /** Returns the time at which the next delivery is due, if it is known. */
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

  /** Recalls unsent deliveries whose subscription, or a suppression list, has changed. */
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
  signal.addEventListener('abort', () => clearTimeout(timer))

  return {
    join(worker: StreamingWorker) {
      workers.add(worker)
      wake()
      return () => void workers.delete(worker)
    },
    /**
     * Reserves room for a new delivery at the worker with the most places. The caller must use or free it.
     */
    reserve: (destination: string) => byPlaces().find(({ room }) => room.reserve(destination)),
    roomMade() {
      if (isMoreDue) wake()
    },
    busyDestinations: () => [...new Set([...workers].flatMap(({ room }) => room.destinations()))],
  }
})
