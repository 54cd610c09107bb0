import { createLruCache } from '../../platform/lru-cache.ts'
import type { Bus } from '../bus.ts'
import type { Announcement } from './peer-client.ts'

/** Announcements of other cores that arrived before the changes of state that they depend on. */
export interface HeldAnnouncements {
  /** Emits `advanced` for the events, now or when the changes before them have arrived. */
  add(announcement: Announcement): void
  /** Must be called for each wake-up that has arrived, with its fields `from` and `changes`. */
  release(from: string, changes?: number): void
  /** Drops the held announcements, because the logs are checked anyway. */
  clear(): void
}

/**
 * Maximum number of events of held announcements. A dropped announcement only delays its events
 * until the next wake-up.
 */
const maxHeld = 2_000
const maxCores = 1_000

/**
 * Keeps the changes and the events of each core in order. Changes arrive through the database, and
 * events usually through a call. Without this order, an event could overtake an earlier change, for
 * example a ban.
 */
export function createHeldAnnouncements(bus: Bus): HeldAnnouncements {
  /** Number of wake-ups with changes that arrived from each core. */
  const arrived = createLruCache<number>(maxCores)
  let held: Announcement[] = []
  /** Number of events of held announcements. Announcements without events need no place. */
  const heldEvents = () => held.reduce((sum, { events }) => sum + events.length, 0)

  const isDue = ({ from, changes }: Announcement) => changes <= (arrived.get(from) ?? 0)

  function emit({ events }: Announcement) {
    for (const { conversationId, sequence, closed, event } of events)
      bus.emit('advanced', conversationId, { sequence, closed }, event)
  }

  return {
    add(announcement) {
      if (isDue(announcement)) emit(announcement)
      else if (announcement.events.length > 0 && heldEvents() + announcement.events.length <= maxHeld)
        held.push(announcement)
    },

    release(from, changes = 0) {
      if (changes <= (arrived.get(from) ?? 0)) return
      arrived.set(from, changes)
      const due = held.filter(isDue)
      held = held.filter((announcement) => !isDue(announcement))
      for (const announcement of due) emit(announcement)
    },

    clear() {
      held = []
    },
  }
}
