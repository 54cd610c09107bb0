import { createSingleFlight } from '../concurrency/single-flight.ts'
import type { Core } from '../core.ts'
import { logFailure } from '../errors.ts'
import type { GrownPart, LogEvent } from '../log-event.ts'
import type { AnnouncedEvent, WakeupDocument, WakeupStore } from './wakeup-store.ts'

/** Minimum time in milliseconds between two wake-ups of this process. */
const paceMs = 10
/**
 * New ends, and characters of their bodies, up to which a wake-up contains the events themselves.
 * Beyond, one shared read costs less, and large wake-ups would fill the capped collection before slow
 * cores have read it.
 */
const maxContents = 32
const maxContentChars = 16_000

export function createWakeupWriter({ logger, now }: Core, store: WakeupStore, processId: string) {
  let next = newContent()
  let changesWritten = 0

  const publishing = createSingleFlight(
    () => next.ends.size > 0 || next.grown.length > 0 || hasChanges() || next.confirmed.size > 0,
    async () => {
      const { ends, grown, changed, announced, ended, isAwaited, isHint, confirmed, published } = next
      if (hasChanges()) changesWritten += 1
      const number = changesWritten
      next = newContent()
      const wakeup: WakeupDocument = {
        from: processId,
        heads: headsOf([...ends.values()]),
        grown: present(grown),
        changed: [...changed],
        announced: present(announced),
        ended: present(ended),
        changes: number,
        awaited: isAwaited || undefined,
        confirmed: present([...confirmed]),
        at: new Date(now()),
      }
      try {
        await store.publish(wakeup, { isHint })
        published.resolve(number)
      } catch (error) {
        published.reject(error)
        throw error
      }
    },
    { paceMs },
  )

  const hasChanges = () => next.changed.size > 0 || next.announced.length > 0

  return {
    /** Returns the content of the next wake-up, to which callers add. */
    next: () => next,

    /** Resolves when the others can read the wake-up. Returns the number of wake-ups with state changes so far. */
    publish() {
      const { promise } = next.published
      publishing
        .run()
        .catch(logFailure(logger, 'write of a wake-up failed; other cores find the changes in their periodic checks'))
      return promise
    },

    settled: publishing.settled,
  }
}

const present = <T>(list: T[]) => (list.length > 0 ? list : undefined)

function newContent() {
  const published = Promise.withResolvers<number>()
  // Avoids an unhandled rejection if no caller waits.
  published.promise.catch(() => {})
  return {
    ends: new Map<string, LogEvent>(),
    grown: [] as GrownPart[],
    changed: new Set<string>(),
    announced: [] as { change: string; ids: string[] }[],
    ended: [] as string[],
    /** Whether the other processes are asked to confirm the changes. */
    isAwaited: false,
    /** Whether the announcement of the changes may be lost. */
    isHint: true,
    /** By process: the number up to which its changes have taken effect here. */
    confirmed: new Map<string, number>(),
    published,
  }
}

export function headsOf(ends: LogEvent[]): WakeupDocument['heads'] {
  const chars = ends.reduce((sum, { message }) => sum + (message?.body.length ?? 0), 0)
  const hasContents = ends.length <= maxContents && chars <= maxContentChars
  return ends.map((event) => {
    const { conversationId, sequence, closed = false, waitingSince } = event
    if (hasContents) return [conversationId, sequence, closed, announced(event)]
    return waitingSince ? [conversationId, sequence, closed, null, waitingSince] : [conversationId, sequence, closed]
  })
}

const announced = ({ operationKey: _key, inputHash: _hash, ...event }: LogEvent): AnnouncedEvent => event
