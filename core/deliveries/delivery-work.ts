/** A worker that waits for deliveries. */
interface Waiter<Found, Room> {
  /** The announcement count at its last poll. */
  polledAt: number
  room: Room
  wake: () => void
  /** Removes it from the queue and returns the function that answers it later. */
  dequeue: () => (found: Found | undefined) => void
}

/** A worker taken from the queue; it waits until `answer` is called. */
export interface Waiting<Found, Room> {
  room: Room
  /** Undefined makes the worker poll again. */
  answer(found: Found | undefined): void
}

export interface DeliveryWork<Found, Room> {
  /** Announces possible work. Wakes one waiting worker after another while they find something. */
  announce(): void
  /** How often `announce` was called. */
  announced(): number
  /**
   * Polls now and after each announcement, until it finds something, is handed something, or the
   * time is over. `poll` returns what it found, whether others may find more, and when the next
   * delivery is due at the latest. Without `poll`, it only waits to be handed something.
   */
  wait(options: {
    until: number
    signal: AbortSignal
    /** Its capacity while it waits. */
    room: Room
    poll?: () => Promise<PollResult<Found>>
  }): Promise<Found | undefined>
  /**
   * Takes the longest-waiting worker with room. The caller must answer it; nothing else wakes it
   * until then.
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
 * How often a waiting worker polls without a hint, in milliseconds. This bounds the cost of a lost
 * hint.
 */
export const pollEveryMs = 1000

/**
 * How workers wait for deliveries on one core. A hint wakes one worker, and a worker that found
 * something wakes the next. So a hundred waiting workers do not all query the database for one
 * delivery. New deliveries of this core are handed to a waiting worker directly.
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
        // This worker leaves; wake another one to poll instead.
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
