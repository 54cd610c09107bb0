/** A worker that waits for something to do. */
interface Waiter<Found, Room> {
  /** The last call to work that it has looked after. */
  looked: number
  room: Room
  wake: () => void
  /** Takes it out of the line, to be answered later. */
  leaveLine: () => (found: Found | undefined) => void
}

/** A worker that was waiting, and waits on until it is answered. */
export interface Waiting<Found, Room> {
  room: Room
  /** With nothing: it looks for itself. */
  answer(found: Found | undefined): void
}

export interface DeliveryWork<Found, Room> {
  /** There may be something to do: one waiting worker after the other is woken, as long as they find something. */
  announce(): void
  /** How often that has happened. */
  announced(): number
  /**
   * Looks, and looks again each time that there may be something, until it finds something, is handed something or the time is
   * over. `look` says what it found, whether others might still find something, and when the next thing is due at the latest;
   * without it, the wait is for what is handed over only.
   */
  wait(options: {
    until: number
    signal: AbortSignal
    /** What it has room for while it waits. */
    room: Room
    look?: () => Promise<Look<Found>>
  }): Promise<Found | undefined>
  /** The longest waiting one with such room, to be answered by the caller: it hears nothing else until then. */
  takeWaiting(hasRoom: (room: Room) => boolean): Waiting<Found, Room> | undefined
  /** Ends every wait. */
  close(): void
}

export interface Look<Found> {
  found?: Found
  othersMayFind: boolean
  nextDueAt?: number
}

/** How often a waiting worker looks without being woken, in milliseconds: a lost hint costs this much time. */
export const lookEveryMs = 1000

/**
 * How workers wait for deliveries on one core. A hint wakes one of them, and who has found something wakes the next: a
 * hundred waiting workers do not all ask the database about one new delivery. What this core makes itself is handed to one of
 * them directly.
 */
export function createDeliveryWork<Found, Room>(now: () => number): DeliveryWork<Found, Room> {
  const waiters = new Set<Waiter<Found, Room>>()
  let announced = 0
  let closed = false

  function wakeNext() {
    for (const waiter of waiters) {
      if (waiter.looked < announced) {
        waiter.wake()
        return
      }
    }
  }

  function pause(looked: number, room: Room, ms: number, signal: AbortSignal): Promise<Found | undefined> {
    if (ms <= 0 || signal.aborted || closed || looked < announced) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      const wake = () => waiter.leaveLine()(undefined)
      const waiter: Waiter<Found, Room> = {
        looked,
        room,
        wake,
        leaveLine() {
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

    async wait({ until, signal, room, look }) {
      while (!look && !closed && !signal.aborted && now() < until) {
        const handed = await pause(Number.POSITIVE_INFINITY, room, until - now(), signal)
        if (handed !== undefined) return handed
      }
      while (look && !closed) {
        const looking = announced
        const { found, othersMayFind, nextDueAt = Number.POSITIVE_INFINITY } = await look()
        if (found !== undefined || othersMayFind) wakeNext()
        const time = now()
        if (found !== undefined || signal.aborted || time >= until) return found
        const ms = Math.min(until - time, lookEveryMs, Math.max(nextDueAt - time, 1))
        const handed = await pause(looking, room, ms, signal)
        if (handed !== undefined) return handed
        // Woken for nothing: somebody else is to look.
        if (signal.aborted) wakeNext()
      }
      return undefined
    },

    takeWaiting(hasRoom) {
      for (const waiter of waiters) {
        if (hasRoom(waiter.room)) return { room: waiter.room, answer: waiter.leaveLine() }
      }
      return undefined
    },

    close() {
      closed = true
      for (const { wake } of waiters) wake()
    },
  }
}
