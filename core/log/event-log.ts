import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { activeContext, batchOrigin, type Context, inSpan, SpanKind } from '../../platform/observability/tracing.ts'
import { ServiceError, unavailable } from '../errors.ts'
import { type CoreMetrics, createCoreMetrics } from '../metrics.ts'
import type { EventStore, LogEnd } from './event-store.ts'
import type { LogHeads } from './log-heads.ts'
import type { LogEvent } from './model.ts'

/** An event that has no place in the log yet. */
export type EventDraft = Omit<LogEvent, 'sequence' | 'occurredAt' | 'closed' | 'removableAt'>

export interface Appended {
  event: LogEvent
  /** The operation was in the log already: this is the event that it made then. */
  replayed: boolean
}

export interface EventLog {
  /**
   * Appends an event. By the time it resolves the event survives the loss of any process. A message to a closed
   * conversation opens it: `conversation.reopened` comes into the log just before it. Closing one that is closed already
   * adds nothing, and answers as a repeat does.
   * Errors: `IdempotencyConflict` when the operation key was used with other input; `ServiceUnavailable` when the store
   * failed or is too far behind: the event may be in the log or not, and the same call again finds out.
   */
  append(draft: EventDraft): Promise<Appended>
  /** Resolves when nothing is being written. */
  drain(): Promise<void>
}

interface Pending {
  draft: EventDraft
  origin: Context
  tries: number
  resolve(appended: Appended): void
  reject(error: unknown): void
}

export interface EventLogDependencies {
  store: Pick<EventStore, 'insert' | 'findOperations'>
  /** How long a transient event stays in the log at least, in milliseconds. */
  transientMs?: number
  heads: LogHeads
  metrics?: CoreMetrics
  now: () => number
  /** An event of this process has come into the log. */
  onAppended: (event: LogEvent) => void
  maxBatch?: number
  /** Batches that may be on their way to the store at once. */
  maxInFlight?: number
  maxWaiting?: number
}

/** More rivals than this for one place in a log are a fault, not a race. */
const maxTries = 200

/**
 * The log's one writer in this process. A conversation is open or closed by what its log says: a writer takes place n + 1
 * only if it knows event n, and event n says which, so that whoever gets the place has decided on the latest state. Whatever arrived while batches were being written is the next batch, with
 * one event at most for each conversation and none for one that has an event on its way; the next sequence is a guess, and the unique index decides.
 */
export function createEventLog({
  store,
  heads,
  metrics = createCoreMetrics(),
  now,
  onAppended,
  transientMs = 3_600_000,
  maxBatch = 512,
  maxInFlight = 2,
  maxWaiting = 20_000,
}: EventLogDependencies): EventLog {
  let waiting: Pending[] = []
  /** Conversations with an event on its way. */
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
      void writeOrRefuse(batch)
    }
    if (inFlight === 0) idle.resolve()
  }

  async function writeOrRefuse(batch: Pending[]) {
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

  /** One event for each conversation, in the order of arrival. */
  function takeBatch(): Pending[] {
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
    const reopening = await thatReopen(batch.filter((pending) => pending.draft.message && ends.get(pending)!.closed))
    const writing = batch.filter((pending) => !isNeedless(pending, ends.get(pending)!))
    const events = writing.map((pending) =>
      place(reopening.has(pending) ? reopened(pending.draft) : pending.draft, ends.get(pending)!),
    )
    const outcomes = events.length > 0 ? await insert(events, writing) : []

    const repeated: Pending[] = []
    const beaten: Pending[] = []
    const next: Pending[] = []
    for (const [index, pending] of writing.entries()) {
      const event = events[index]!
      if (outcomes[index] !== 'inserted') metrics.logConflicts.inc({ kind: outcomes[index]! })
      if (outcomes[index] === 'operation_taken') repeated.push(pending)
      else if (outcomes[index] === 'sequence_taken') beaten.push(pending)
      else {
        heads.advance(event.conversationId, { sequence: event.sequence, closed: event.closed === true })
        onAppended(event)
        if (reopening.has(pending)) next.push(pending)
        else pending.resolve({ event, replayed: false })
      }
    }
    waiting = [...next, ...waiting]
    if (beaten.length > 0) tryAgain(beaten)
    if (repeated.length > 0) {
      await answerRepeats(repeated).catch((error) => {
        for (const { reject } of repeated) reject(unavailable(error))
      })
    }
  }

  async function insert(events: LogEvent[], batch: Pending[]) {
    metrics.logBatchSize.observe(events.length)
    const endTimer = metrics.logInsertDuration.startTimer()
    const attributes = {
      'db.system.name': 'mongodb',
      'db.collection.name': 'events',
      'db.operation.name': 'insert',
      'db.operation.batch.size': events.length,
    }
    const origin = batchOrigin(batch.map((pending) => pending.origin))
    try {
      return await inSpan('insert events', { ...origin, kind: SpanKind.CLIENT, attributes }, () => store.insert(events))
    } finally {
      endTimer()
    }
  }

  function place({ transient, ...draft }: EventDraft, end: LogEnd): LogEvent {
    const occurredAt = new Date(now())
    const closed = draft.type === 'conversation.closed' || (end.closed && !opens(draft))
    return {
      ...draft,
      sequence: end.sequence + 1,
      occurredAt,
      ...(closed && { closed }),
      ...(transient && { transient, removableAt: new Date(occurredAt.getTime() + transientMs) }),
    }
  }

  /** Closing what is closed: the answer is the event that the log ends with, near enough. */
  function isNeedless({ draft, resolve }: Pending, end: LogEnd): boolean {
    if (draft.type !== 'conversation.closed' || !end.closed) return false
    resolve({ event: { ...draft, sequence: end.sequence, occurredAt: new Date(now()), closed: true }, replayed: true })
    return true
  }

  /** Those of these messages that are new: the repeat of an old one opens nothing. */
  async function thatReopen(candidates: Pending[]): Promise<Set<Pending>> {
    if (candidates.length === 0) return new Set()
    const found = await store.findOperations(
      candidates.map(({ draft }) => ({ conversationId: draft.conversationId, operationKey: draft.operationKey! })),
    )
    const known = new Set(found.map((event) => `${event.conversationId} ${event.operationKey}`))
    return new Set(candidates.filter(({ draft }) => !known.has(`${draft.conversationId} ${draft.operationKey}`)))
  }

  /** Another process was first in these conversations: their logs go on where it left off. */
  function tryAgain(beaten: Pending[]) {
    heads.forget(beaten.map(({ draft }) => draft.conversationId))
    for (const pending of beaten) pending.tries += 1
    const [tired, again] = [
      beaten.filter(({ tries }) => tries >= maxTries),
      beaten.filter(({ tries }) => tries < maxTries),
    ]
    for (const { reject } of tired) reject(unavailable())
    waiting = [...again, ...waiting]
  }

  async function answerRepeats(repeated: Pending[]) {
    const operations = repeated.map(({ draft }) => ({
      conversationId: draft.conversationId,
      operationKey: draft.operationKey!,
    }))
    const found = await store.findOperations(operations)
    const byOperation = new Map(found.map((event) => [`${event.conversationId} ${event.operationKey}`, event]))
    for (const { draft, resolve, reject } of repeated) {
      const event = byOperation.get(`${draft.conversationId} ${draft.operationKey}`)
      if (!event) reject(unavailable())
      else if (event.inputHash !== draft.inputHash) reject(new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT))
      else resolve({ event, replayed: true })
    }
  }

  return {
    append(draft) {
      if (waiting.length >= maxWaiting) return Promise.reject(unavailable())
      const { promise, resolve, reject } = Promise.withResolvers<Appended>()
      waiting.push({ draft, origin: activeContext(), tries: 0, resolve, reject })
      metrics.logQueueLength.set(waiting.length)
      if (!isStarting) {
        if (inFlight === 0) idle = Promise.withResolvers()
        isStarting = true
        // Let everything that is on its way in this turn come along.
        queueMicrotask(start)
      }
      return promise
    },

    drain: () => idle.promise,
  }
}

const opens = ({ message, type }: EventDraft) => message !== undefined || type === 'conversation.reopened'

const reopened = ({ conversationId }: EventDraft): EventDraft => ({ conversationId, type: 'conversation.reopened' })
