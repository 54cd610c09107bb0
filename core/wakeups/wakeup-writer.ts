import type { Logger } from 'pino'
import { createSingleFlight } from '../concurrency/single-flight.ts'
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

export function createWakeupWriter({
  store,
  processId,
  logger,
  now,
}: {
  store: Pick<WakeupStore, 'publish'>
  processId: string
  logger: Logger
  now: () => number
}) {
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
        ...(grown.length > 0 && { grown }),
        changed: [...changed],
        ...(announced.length > 0 && { announced }),
        ...(ended.length > 0 && { ended }),
        changes: number,
        ...(isAwaited && { awaited: true }),
        ...(confirmed.size > 0 && { confirmed: [...confirmed] }),
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

  /** Adds changes whose announcement may be lost. */
  function addHint(ids: string[]) {
    for (const id of ids) next.changed.add(id)
  }

  const hasChanges = () => next.changed.size > 0 || next.announced.length > 0

  return {
    addEnd(event: LogEvent) {
      const { conversationId, sequence } = event
      if ((next.ends.get(conversationId)?.sequence ?? 0) < sequence) next.ends.set(conversationId, event)
    },

    addPart: (part: GrownPart): void => void next.grown.push(part),
    addChanged(ids: string[]) {
      next.isHint = false
      addHint(ids)
    },

    addHint,
    addAnnounced(announced: { change: string; ids: string[] }) {
      next.isHint = false
      next.announced.push(announced)
    },

    addEnded: (change: string): void => void next.ended.push(change),
    /** Asks the other processes to confirm the changes of the next wake-up. */
    awaitChanges() {
      next.isAwaited = true
    },

    /** Confirms that the changes of another process up to this number have taken effect here. */
    confirm(from: string, changes: number) {
      next.confirmed.set(from, Math.max(changes, next.confirmed.get(from) ?? 0))
    },

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
    isAwaited: false,
    isHint: true,
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
