import type { DeliveryQueue } from './delivery-queue-store.ts'

/** Free capacity of a worker. */
interface Room {
  limit: number
  perDestination: number
  underWay: ReadonlyMap<string, number>
  ahead?: ReadonlyMap<string, number>
}

/** Destinations that a claim chose. */
interface Choice {
  chosen: string[]
  isAnyDue: boolean
  isFresh: boolean
  nextDueAt?: number
}

export interface DueDestinations {
  /**
   * Chooses at random up to `limit` due destinations that the worker has room for. `isFresh` is
   * true if the due destinations were read by this call. Also returns the next due time if it is
   * known.
   */
  choose(request: Room, time: Date, mustRead: boolean): Promise<Choice>
  /** Skips a destination until this time, because its rate limit is reached. */
  pause(destination: string, until: number): void
  /** Returns the end of the first pause; infinity if no destination is paused. */
  pausedUntil(): number
}

/** Number of queue entries that a poll reads to find due deliveries. */
const lookAhead = 256
/**
 * Maximum age in milliseconds of the list of due destinations. A destination that becomes due
 * during a backlog waits at most this long until it can be chosen.
 */
const backlogMaxAgeMs = 500

/**
 * Chooses destinations with due deliveries. The cost of a choice does not grow with the number of
 * due destinations, because many claims share one list of them.
 */
export function createDueDestinations({
  queue,
  random,
}: {
  queue: Pick<DeliveryQueue, 'upcoming' | 'dueDestinations'>
  random: () => number
}): DueDestinations {
  /**
   * Set when a poll finds `lookAhead` due deliveries, because more may be due. Unset when a poll
   * finds that nothing is due. Contains the due destinations that no claim has chosen since
   * `readAt`, in random order.
   */
  let backlog: { destinations: string[]; readAt: number } | undefined

  /** End of the pause of each destination whose rate limit is reached. */
  const pauses = new Map<string, number>()

  const isOpen = (destination: string, request: Room) => roomFor(destination, request) > 0 && !pauses.has(destination)

  async function choose(request: Room, time: Date, mustRead: boolean): Promise<Choice> {
    for (const [destination, until] of pauses) if (until <= time.getTime()) pauses.delete(destination)
    if (backlog && !mustRead && time.getTime() < backlog.readAt + backlogMaxAgeMs) {
      const chosen = takeFromBacklog(backlog, request)
      if (chosen.length > 0) return { chosen, isAnyDue: true, isFresh: false }
    }
    const { destinations, ...nextDueAt } = await read(time)
    if (backlog) backlog = { destinations: shuffled(destinations, random), readAt: time.getTime() }
    const chosen = backlog
      ? takeFromBacklog(backlog, request)
      : shuffled(
          destinations.filter((destination) => isOpen(destination, request)),
          random,
        ).slice(0, request.limit)
    return { chosen, isAnyDue: destinations.length > 0, isFresh: true, ...nextDueAt }
  }

  /**
   * Removes from the backlog up to `limit` destinations that the worker has room for, and returns
   * them. So each destination is chosen once before any is chosen again, and many claims share one
   * list of all due destinations.
   */
  function takeFromBacklog({ destinations }: { destinations: string[] }, request: Room): string[] {
    const chosen: string[] = []
    let kept = 0
    let index = 0
    for (; index < destinations.length && chosen.length < request.limit; index += 1) {
      const destination = destinations[index] as string
      if (isOpen(destination, request)) chosen.push(destination)
      else destinations[kept++] = destination
    }
    destinations.splice(kept, index - kept)
    return chosen
  }

  /** Returns the destinations with due deliveries, and the next due time if it is known. */
  async function read(time: Date): Promise<{ destinations: string[]; nextDueAt?: number }> {
    if (!backlog) {
      const upcoming = await queue.upcoming(lookAhead)
      const due = upcoming.filter(({ dueAt }) => dueAt <= time)
      const later = upcoming[due.length]
      if (due.length < lookAhead) {
        const destinations = [...new Set(due.map(({ destination }) => destination))]
        return { destinations, nextDueAt: later?.dueAt.getTime() }
      }
    }
    // More deliveries may be due than the look-ahead covers. So this poll and the later ones list
    // all due destinations, until nothing is due.
    const destinations = await queue.dueDestinations(time)
    backlog = destinations.length > 0 ? { destinations, readAt: time.getTime() } : undefined
    return backlog ? { destinations } : read(time)
  }

  return {
    choose,
    pause: (destination, until) => void pauses.set(destination, until),
    pausedUntil: () => Math.min(Number.POSITIVE_INFINITY, ...pauses.values()),
  }
}

/** Returns how many further deliveries of this destination the worker can take. */
export function roomFor(destination: string, { perDestination, underWay, ahead }: Room): number {
  return perDestination + (ahead?.get(destination) ?? 0) - (underWay.get(destination) ?? 0)
}

export function shuffled<T>(values: T[], random: () => number): T[] {
  const order = values.map((value) => ({ value, place: random() }))
  return order.sort((a, b) => a.place - b.place).map(({ value }) => value)
}
