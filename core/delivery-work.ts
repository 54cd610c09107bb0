/** A worker that waits for something to do. */
interface Waiter {
  /** The last call to work that it has looked after. */
  looked: number
  wake: () => void
}

export interface DeliveryWork {
  /** There may be something to do: one waiting worker after the other is woken, as long as they find something. */
  announce(): void
  /**
   * Looks, and looks again each time that there may be something, until it finds something or the time is over. `look`
   * says what it found, whether others might still find something, and when the next thing is due at the latest.
   */
  wait<T>(options: { until: number; signal: AbortSignal; look: () => Promise<Look<T>> }): Promise<T | undefined>
  /** Ends every wait. */
  close(): void
}

export interface Look<T> {
  found?: T
  othersMayFind: boolean
  nextDueAt?: number
}

/** How often a waiting worker looks without being woken, in milliseconds: a lost hint costs this much time. */
const lookEveryMs = 1000

/**
 * How workers wait for deliveries on one core. A hint wakes one of them, and who has found something wakes the next: a
 * hundred waiting workers do not all ask the database about one new delivery.
 */
export function createDeliveryWork(now: () => number): DeliveryWork {
  const waiters = new Set<Waiter>()
  let announced = 0
  let closed = false

  function wakeNext() {
    for (const waiter of waiters) {
      if (waiter.looked < announced) {
        waiters.delete(waiter)
        waiter.wake()
        return
      }
    }
  }

  function pause(looked: number, ms: number, signal: AbortSignal): Promise<void> {
    if (ms <= 0 || signal.aborted || closed || looked < announced) return Promise.resolve()
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', stop)
        resolve()
      }
      const waiter: Waiter = { looked, wake }
      const stop = () => {
        waiters.delete(waiter)
        wake()
      }
      const timer = setTimeout(stop, ms)
      signal.addEventListener('abort', stop, { once: true })
      waiters.add(waiter)
    })
  }

  return {
    announce() {
      announced += 1
      wakeNext()
    },

    async wait({ until, signal, look }) {
      while (!closed) {
        const looking = announced
        const { found, othersMayFind, nextDueAt = Number.POSITIVE_INFINITY } = await look()
        if (found !== undefined || othersMayFind) wakeNext()
        const time = now()
        if (found !== undefined || signal.aborted || time >= until) return found
        await pause(looking, Math.min(until - time, lookEveryMs, Math.max(nextDueAt - time, 1)), signal)
        // Woken for nothing: somebody else is to look.
        if (signal.aborted) wakeNext()
      }
      return undefined
    },

    close() {
      closed = true
      for (const { wake } of waiters) wake()
      waiters.clear()
    },
  }
}
