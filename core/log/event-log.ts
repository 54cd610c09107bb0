import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { activeContext, type Context } from '../../platform/observability/tracing.ts'
import { perCore } from '../core.ts'
import { ServiceError, unavailable } from '../errors.ts'
import { isEntry, type LogEnd, type LogEvent } from '../log-event.ts'
import { type CoreMetrics, createCoreMetrics } from '../metrics.ts'
import { type EventDraft, eventAfter, reopened } from './event-draft.ts'
import { type EventStore, eventsOf } from './event-store.ts'
import { type LogHeads, logHeadsOf } from './log-heads.ts'
import { measuredInsert } from './measured-insert.ts'

export interface Appended {
  event: LogEvent
  /** True if the log already had an event with this operation key. `event` is then that event. */
  replayed: boolean
}

interface Pending {
  draft: EventDraft
  /** The only end of the log after which the event may be appended. */
  onlyAfter?: number | undefined
  origin: Context
  tries: number
  resolve(appended: Appended | undefined): void
  reject(error: unknown): void
}

export interface EventLogDependencies {
  store: Pick<EventStore, 'insert' | 'findOperations'>
  heads: LogHeads
  metrics?: CoreMetrics
  now: () => number
  /** Called after an event of this process was written. */
  onAppended: (event: LogEvent) => void
  maxBatch?: number
  /** Maximum number of batches being written at once. */
  maxInFlight?: number
  maxWaiting?: number
}

/**
 * Maximum number of tries for one event. Concurrent writers alone cannot cause so many conflicts,
 * so another cause is likely, and the event is rejected.
 */
const maxTries = 200

export const logOf = perCore((core) => {
  const { bus, metrics, now } = core
  return createEventLog({
    store: eventsOf(core),
    heads: logHeadsOf(core),
    metrics,
    now,
    onAppended: (event) => bus.emit('appended', event),
  })
})

/**
 * Writes the events of this process to the log in batches. Events that arrive during a write form
 * the next batch.
 *
 * A writer guesses the next sequence, and the unique index rejects a wrong guess. A writer takes
 * sequence n + 1 only if it has seen event n. Each event states whether its conversation is closed
 * and since when its visitor waits, so the writer always decides on the latest state.
 *
 * A batch has at most one event of a conversation, and a conversation never has two events in
 * flight.
 */
export function createEventLog({
  store,
  heads,
  metrics = createCoreMetrics(),
  now,
  onAppended,
  maxBatch = 512,
  maxInFlight = 2,
  maxWaiting = 20_000,
}: EventLogDependencies) {
  const insert = measuredInsert(store, metrics)
  let waiting: Pending[] = []
  /** Conversations with an event in flight. */
  const busy = new Set<string>()
  let inFlight = 0
  let isStarting = false
  let idle = Promise.withResolvers<void>()
  idle.resolve()

  function start() {
    isStarting = false
    while (inFlight < maxInFlight) {
      const batch = takeBatch()
      if (batch.length === 0) break
      inFlight += 1
      void writeBatch(batch)
    }
    if (inFlight === 0) idle.resolve()
  }

  async function writeBatch(batch: Pending[]) {
    const conversationIds = batch.map(({ draft }) => draft.conversationId)
    for (const id of conversationIds) busy.add(id)
    try {
      await write(batch)
    } catch (error) {
      heads.forget(conversationIds)
      for (const { reject } of batch) reject(unavailable(error))
    }
    for (const id of conversationIds) busy.delete(id)
    inFlight -= 1
    start()
  }

  /** Takes at most one event of each conversation, in the order of arrival. */
  function takeBatch() {
    const batch: Pending[] = []
    const rest: Pending[] = []
    const taken = new Set<string>()
    for (const pending of waiting) {
      const { conversationId } = pending.draft
      if (batch.length < maxBatch && !taken.has(conversationId) && !busy.has(conversationId)) {
        taken.add(conversationId)
        batch.push(pending)
      } else rest.push(pending)
    }
    waiting = rest
    metrics.logQueueLength.set(waiting.length)
    return batch
  }

  async function write(batch: Pending[]) {
    const last = await heads.get(batch.map(({ draft }) => draft.conversationId))
    const ends = new Map(batch.map((pending, index) => [pending, last[index]!]))
    const toClosed = batch.filter((pending) => isEntry(pending.draft) && ends.get(pending)!.closed)
    const known = await findRepeated(toClosed)
    // A repeated message must not reopen its conversation.
    const reopening = new Set(toClosed.filter((pending) => !known.has(pending)))
    const writing = batch.filter(
      (pending) => !resolveIfMoved(pending, ends.get(pending)!) && !resolveIfClosed(pending, ends.get(pending)!),
    )
    const events = writing.map((pending) =>
      eventAfter(ends.get(pending)!, reopening.has(pending) ? reopened(pending.draft) : pending.draft, new Date(now())),
    )
    const outcomes =
      events.length > 0
        ? await insert(
            events,
            writing.map(({ origin }) => origin),
          )
        : []

    const repeated: Pending[] = []
    const conflicted: Pending[] = []
    const next: Pending[] = []
    for (const [index, pending] of writing.entries()) {
      const event = events[index]!
      if (outcomes[index] !== 'inserted') metrics.logConflicts.inc({ kind: outcomes[index]! })
      if (outcomes[index] === 'operation_taken') repeated.push(pending)
      else if (outcomes[index] === 'sequence_taken') conflicted.push(pending)
      else {
        const { sequence, closed = false, waitingSince } = event
        heads.advance(event.conversationId, { sequence, closed, waitingSince })
        onAppended(event)
        if (reopening.has(pending)) next.push(pending)
        else pending.resolve({ event, replayed: false })
      }
    }
    waiting = [...next, ...waiting]
    if (conflicted.length > 0) retryConflicted(conflicted)
    if (repeated.length > 0) {
      await answerRepeats(repeated).catch((error) => {
        for (const { reject } of repeated) reject(unavailable(error))
      })
    }
  }

  /** If an event may not be appended after this end, resolves its request and returns true. */
  function resolveIfMoved({ onlyAfter, resolve }: Pending, { sequence }: LogEnd) {
    if (onlyAfter === undefined || onlyAfter === sequence) return false
    resolve(undefined)
    return true
  }

  /**
   * If a request closes a conversation that is already closed, resolves the request without a write
   * and returns true. The returned event may not be the last event of the log.
   */
  function resolveIfClosed({ draft, resolve }: Pending, end: LogEnd) {
    if (draft.type !== 'conversation.closed' || !end.closed) return false
    resolve({ event: { ...draft, sequence: end.sequence, occurredAt: new Date(now()), closed: true }, replayed: true })
    return true
  }

  /** Returns the events that the log already has for the operations of these requests. */
  async function findRepeated(requests: Pending[]): Promise<Map<Pending, LogEvent>> {
    if (requests.length === 0) return new Map()
    const operations = requests.map(({ draft }) => ({
      conversationId: draft.conversationId,
      operationKey: draft.operationKey!,
    }))
    const found = new Map((await store.findOperations(operations)).map((event) => [operationOf(event), event]))
    return new Map(
      requests.flatMap((pending) => {
        const event = found.get(operationOf(pending.draft))
        return event ? [[pending, event]] : []
      }),
    )
  }

  /**
   * Retries events whose sequence another process took. First drops the cached ends of their logs.
   */
  function retryConflicted(conflicted: Pending[]) {
    heads.forget(conflicted.map(({ draft }) => draft.conversationId))
    for (const pending of conflicted) pending.tries += 1
    const [exhausted, again] = [
      conflicted.filter(({ tries }) => tries >= maxTries),
      conflicted.filter(({ tries }) => tries < maxTries),
    ]
    for (const { reject } of exhausted) reject(unavailable())
    waiting = [...again, ...waiting]
  }

  async function answerRepeats(repeated: Pending[]) {
    const known = await findRepeated(repeated)
    for (const pending of repeated) {
      const { draft, resolve, reject } = pending
      const event = known.get(pending)
      if (!event) reject(unavailable())
      else if (event.inputHash !== draft.inputHash) reject(new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT))
      else resolve({ event, replayed: true })
    }
  }

  function enqueue(draft: EventDraft, onlyAfter?: number) {
    if (waiting.length >= maxWaiting) return Promise.reject(unavailable())
    const { promise, resolve, reject } = Promise.withResolvers<Appended | undefined>()
    waiting.push({ draft, onlyAfter, origin: activeContext(), tries: 0, resolve, reject })
    metrics.logQueueLength.set(waiting.length)
    if (!isStarting) {
      if (inFlight === 0) idle = Promise.withResolvers()
      isStarting = true
      // Starts after the current turn of the event loop, so that the batch has all events of the
      // turn.
      queueMicrotask(start)
    }
    return promise
  }

  return {
    /**
     * Appends an event. When the call resolves, the event survives the loss of any process. A message
     * to a closed conversation reopens the conversation: `conversation.reopened` is appended just
     * before the message. Closing a closed conversation appends nothing and returns `replayed`.
     *
     * Errors: `IdempotencyConflict` when the operation key was used with different input.
     * `ServiceUnavailable` when the store failed or the queue is full. It is then unknown whether the
     * log has the event, and the caller can safely retry.
     */
    append: (draft: EventDraft) => enqueue(draft) as Promise<Appended>,
    /**
     * Appends an event like `append`, but only if `end` is the end of the log. Otherwise returns
     * undefined. So a caller that decides on state whose changes are events decides on the latest
     * state: it reads the end, then the state, and appends.
     */
    appendAfter: (end: number, draft: EventDraft) => enqueue(draft, end),
    /** Returns the presumed end of a log. The log may have later events. */
    endOf: async (conversationId: string) => (await heads.get([conversationId]))[0]!.sequence,
    /** Resolves when no write is in progress. */
    drain: () => idle.promise,
  }
}

export type EventLog = ReturnType<typeof createEventLog>

const operationOf = ({ conversationId, operationKey }: EventDraft) => `${conversationId} ${operationKey}`
