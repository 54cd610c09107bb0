/** A worker that waits for deliveries. */
interface Waiter<Found, Room> {
  /** Value of `announced()` at the worker's last poll. */
  polledAt: number
  room: Room
  wake: () => void
  /** Removes the worker from the waiting workers. Returns the function that ends its wait. */
  dequeue: () => (found: Found | undefined) => void
}

/**
 * A worker that `takeWaiting` removed from the waiting workers. It waits until `answer` is called.
 */
export interface Waiting<Found, Room> {
  room: Room
  /**
   * Answers the waiting worker with `found`. If `found` is undefined, the worker polls again and
   * keeps waiting.
   */
  answer(found: Found | undefined): void
}

export interface DeliveryWork<Found, Room> {
  /**
   * Announces that there may be work. Wakes one waiting worker. A worker that finds something wakes
   * the next.
   */
  announce(): void
  /** Returns the number of announcements so far. */
  announced(): number
  /**
   * Polls now and after each announcement. The wait ends when a poll finds something, when the
   * caller of `takeWaiting` answers, or at `until`. `poll` returns what it found, whether other
   * workers may find more, and the latest time for the next poll. Without `poll`, the worker only
   * waits for an answer.
   */
  wait(options: {
    until: number
    signal: AbortSignal
    /** The worker's free capacity while it waits. */
    room: Room
    poll?: () => Promise<PollResult<Found>>
  }): Promise<Found | undefined>
  /**
   * Takes the first waiting worker, in the order of arrival, for which `hasRoom` returns true. The
   * caller must call `answer`, because nothing else wakes that worker.
   */
  takeWaiting(hasRoom: (room: Room) => boolean): Waiting<Found, Room> | undefined
  /** Ends every wait. */
  close(): void
}

export interface PollResult<Found> {
  found?: Found
  othersMayFind: boolean
  nextDueAt?: number
}

/**
 * Interval in milliseconds at which a waiting worker polls without an announcement. It limits the
 * delay if an announcement of another core is lost.
 */
export const pollEveryMs = 1000

/**
 * Lets workers wait for deliveries on one core. An announced delivery wakes one worker, and a worker
 * that has found a delivery wakes the next one. So a hundred waiting workers do not all query the database
 * for one delivery. New deliveries of this core are passed directly to a waiting worker.
 */
export function createDeliveryWork<Found, Room>(now: () => number): DeliveryWork<Found, Room> {
  const waiters = new Set<Waiter<Found, Room>>()
  let announced = 0
  let closed = false

  function wakeNext() {
    for (const waiter of waiters) {
      if (waiter.polledAt < announced) {
        waiter.wake()
        return
      }
    }
  }

  function pause(polledAt: number, room: Room, ms: number, signal: AbortSignal): Promise<Found | undefined> {
    if (ms <= 0 || signal.aborted || closed || polledAt < announced) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      const wake = () => waiter.dequeue()(undefined)
      const waiter: Waiter<Found, Room> = {
        polledAt,
        room,
        wake,
        dequeue() {
          clearTimeout(timer)
          signal.removeEventListener('abort', wake)
          waiters.delete(waiter)
          return resolve
        },
      }
      const timer = setTimeout(wake, ms)
      signal.addEventListener('abort', wake, { once: true })
      waiters.add(waiter)
    })
  }

  return {
    announce() {
      announced += 1
      wakeNext()
    },

    announced: () => announced,

    async wait({ until, signal, room, poll }) {
      while (!poll && !closed && !signal.aborted && now() < until) {
        const handed = await pause(Number.POSITIVE_INFINITY, room, until - now(), signal)
        if (handed !== undefined) return handed
      }
      while (poll && !closed) {
        const polledAt = announced
        const { found, othersMayFind, nextDueAt = Number.POSITIVE_INFINITY } = await poll()
        if (found !== undefined || othersMayFind) wakeNext()
        const time = now()
        if (found !== undefined || signal.aborted || time >= until) return found
        const ms = Math.min(until - time, pollEveryMs, Math.max(nextDueAt - time, 1))
        const handed = await pause(polledAt, room, ms, signal)
        if (handed !== undefined) return handed
        // This worker leaves without a poll, so another worker must poll.
        if (signal.aborted) wakeNext()
      }
      return undefined
    },

    takeWaiting(hasRoom) {
      for (const waiter of waiters) {
        if (hasRoom(waiter.room)) return { room: waiter.room, answer: waiter.dequeue() }
      }
      return undefined
    },

    close() {
      closed = true
      for (const { wake } of waiters) wake()
    },
  }
}
