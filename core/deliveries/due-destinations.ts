import { perCore } from '../core.ts'
import { deliveryQueueOf } from './queue.ts'
import type { WorkerRoom } from './worker-room.ts'

/** Destinations that a claim chose. */
interface Choice {
  chosen: string[]
  /** Number of due deliveries; infinity if there are more than a poll reads. */
  due: number
  isFresh: boolean
  nextDueAt?: number
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
export const dueDestinationsOf = perCore((core) => {
  const { random } = core
  const queue = deliveryQueueOf(core)
  /**
   * Set when a poll finds `lookAhead` due deliveries, because more may be due. Unset when a poll
   * finds that nothing is due. Contains the due destinations that no claim has chosen since
   * `readAt`, in random order.
   */
  let backlog: { destinations: string[]; readAt: number } | undefined

  /** End of the pause of each destination whose rate limit is reached. */
  const pauses = new Map<string, number>()

  /**
   * Chooses, at random, due destinations of which the worker can take one delivery each.
   * `isFresh` is true if the due destinations were read by this call. Also returns the next due
   * time if it is known.
   */
  async function choose(room: WorkerRoom, time: Date, mustRead: boolean): Promise<Choice> {
    for (const [destination, until] of pauses) if (until <= time.getTime()) pauses.delete(destination)
    if (backlog && !mustRead && time.getTime() < backlog.readAt + backlogMaxAgeMs) {
      const chosen = takeOpen(backlog.destinations, room)
      if (chosen.length > 0) return { chosen, due: Number.POSITIVE_INFINITY, isFresh: false }
    }
    const { destinations, ...rest } = await read(time)
    if (backlog) backlog = { destinations: shuffled(destinations, random), readAt: time.getTime() }
    const chosen = takeOpen(backlog?.destinations ?? shuffled(destinations, random), room)
    return { chosen, isFresh: true, ...rest }
  }

  /**
   * Removes from the list, and returns, destinations of which the worker can take one delivery each.
   * So every destination gets a turn before one is chosen again. All claims of a core share the list.
   */
  function takeOpen(destinations: string[], room: WorkerRoom) {
    const chosen: string[] = []
    const kept: string[] = []
    for (const destination of destinations) {
      if (!pauses.has(destination) && room.reserve(destination)) {
        chosen.push(destination)
        continue
      }
      kept.push(destination)
      // The refused destination waits for room, so the worker's next room is filled.
      if (room.places() === 0) break
    }
    destinations.splice(0, chosen.length + kept.length, ...kept)
    for (const destination of chosen) room.free(destination)
    return chosen
  }

  /** Returns the destinations with due deliveries, and the next due time if it is known. */
  async function read(time: Date): Promise<{ destinations: string[]; due: number; nextDueAt?: number }> {
    if (!backlog) {
      const upcoming = await queue.upcoming(lookAhead)
      const due = upcoming.filter(({ dueAt }) => dueAt <= time)
      const later = upcoming[due.length]
      if (due.length < lookAhead) {
        const destinations = [...new Set(due.map(({ destination }) => destination))]
        return { destinations, due: due.length, nextDueAt: later?.dueAt.getTime() }
      }
    }
    // More deliveries may be due than the look-ahead covers. So this poll and the later ones list
    // all due destinations, until nothing is due.
    const destinations = await queue.dueDestinations(time)
    backlog = destinations.length > 0 ? { destinations, readAt: time.getTime() } : undefined
    return backlog ? { destinations, due: Number.POSITIVE_INFINITY } : read(time)
  }

  return {
    choose,
    /** Skips a destination until this time, because its rate limit is reached. */
    pause: (destination: string, until: number) => void pauses.set(destination, until),
    /** Returns the end of the first pause; infinity if no destination is paused. */
    pausedUntil: () => Math.min(Number.POSITIVE_INFINITY, ...pauses.values()),
  }
})

export function shuffled<T>(values: T[], random: () => number): T[] {
  const order = values.map((value) => ({ value, place: random() }))
  return order.sort((a, b) => a.place - b.place).map(({ value }) => value)
}
