import { byKey } from '../../platform/concurrency/batcher.ts'
import { activeContext, type Context, inDatabaseSpan } from '../../platform/observability/tracing.ts'
import { perCore } from '../core.ts'
import { ServiceError, unavailable } from '../errors.ts'
import { isCompletion, isEntry, type LogEnd, type LogEvent } from '../log-event.ts'
import { eventsOf } from './event-store.ts'
import { logHeadsOf } from './log-heads.ts'
import { transientMs } from './transient-sweep.ts'

/** An event to append. The log adds the sequence, the time, the state after it and `removableAt`. */
export type EventDraft = Omit<LogEvent, 'sequence' | 'occurredAt' | 'closed' | 'waitingSince' | 'removableAt'>

export interface Appended {
  event: LogEvent
  /** True if the log already had an event with this operation key. `event` is then that event. */
  replayed: boolean
}

interface Pending {
  draft: EventDraft
  /** The only end of the log after which the event may be appended. */
  onlyAfter?: number
  /** The end of the log, as the present try knows it. */
  end: LogEnd
  origin: Context
  tries: number
  resolve(appended: Appended | undefined): void
  reject(error: unknown): void
}

const maxBatch = 512
const maxInFlight = 2
const maxWaiting = 20_000

/** Maximum tries for one event. Concurrent writers alone cannot cause so many conflicts. */
const maxTries = 200

/**
 * Writes the events of this process to the log in batches, each with at most one event of a conversation.
 * Events that arrive during a write form the next batch. A conversation never has two events in flight.
 *
 * A writer guesses the next sequence, and the unique index rejects a wrong guess. A writer takes
 * sequence n + 1 only if it has seen event n. Each event states whether its conversation is closed
 * and since when its visitor waits, so the writer always decides on the latest state.
 */
export const logOf = perCore((core) => {
  const { bus, metrics, now } = core
  const store = eventsOf(core)
  const heads = logHeadsOf(core)
  let waiting: Pending[] = []
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
    const ends = await heads.get(batch.map(({ draft }) => draft.conversationId))
    for (const [index, pending] of batch.entries()) pending.end = ends[index]!
    const toClosed = batch.filter(({ draft, end }) => reopens(draft) && end.closed)
    const known = await findRepeated(toClosed)
    // A repeated message must not reopen its conversation.
    const reopening = new Set(toClosed.filter(({ draft }) => !known.has(operationOf(draft))))
    const writing = batch.filter((pending) => !resolveWithoutEvent(pending))
    if (writing.length === 0) return
    const events = writing.map((pending) =>
      eventAfter(pending.end, reopening.has(pending) ? reopened(pending.draft) : pending.draft, new Date(now())),
    )
    const outcomes = await insert(
      events,
      writing.map(({ origin }) => origin),
    )

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
        bus.emit('appended', event)
        if (reopening.has(pending)) next.push(pending)
        else pending.resolve({ event, replayed: false })
      }
    }
    waiting = [...next, ...waiting]
    retryConflicted(conflicted)
    await answerRepeats(repeated).catch((error) => {
      for (const { reject } of repeated) reject(unavailable(error))
    })
  }

  async function insert(events: LogEvent[], origins: Context[]) {
    metrics.logBatchSize.observe(events.length)
    const endTimer = metrics.logInsertDuration.startTimer()
    const call = { collection: 'events', operation: 'insert', origins }
    return inDatabaseSpan('insert events', call, () => store.insert(events)).finally(endTimer)
  }

  /**
   * Resolves a request that appends nothing, and returns true: its log has moved on, or it closes a closed
   * conversation or reopens an open one. In the second case, the event may not be the last one of the log.
   */
  function resolveWithoutEvent(pending: Pending) {
    const { draft, onlyAfter, tries, resolve } = pending
    const { sequence, closed } = pending.end
    if (onlyAfter !== undefined && onlyAfter !== sequence) resolve(undefined)
    else if (draft.type !== (closed ? 'conversation.closed' : 'conversation.reopened')) return false
    // Another process may have changed the conversation since this one read the end of its log.
    else if (tries === 0) retryConflicted([pending])
    else resolve({ event: { ...eventAfter(pending.end, draft, new Date(now())), sequence }, replayed: true })
    return true
  }

  /** Returns the events that the log already has for the operations of these requests, by `operationOf`. */
  async function findRepeated(requests: Pending[]): Promise<Map<string, LogEvent>> {
    if (requests.length === 0) return new Map()
    const operations = requests.map(({ draft: { conversationId, operationKey } }) => ({
      conversationId,
      operationKey: operationKey!,
    }))
    return byKey(await store.findOperations(operations), operationOf)
  }

  function retryConflicted(conflicted: Pending[]) {
    heads.forget(conflicted.map(({ draft }) => draft.conversationId))
    for (const pending of conflicted) {
      pending.tries += 1
      if (pending.tries >= maxTries) pending.reject(unavailable())
    }
    waiting = [...conflicted.filter(({ tries }) => tries < maxTries), ...waiting]
  }

  async function answerRepeats(repeated: Pending[]) {
    const known = await findRepeated(repeated)
    for (const { draft, resolve, reject } of repeated) {
      const event = known.get(operationOf(draft))
      if (!event) reject(unavailable())
      else if (event.inputHash !== draft.inputHash) reject(new ServiceError('IdempotencyConflict'))
      else resolve({ event, replayed: true })
    }
  }

  function enqueue(draft: EventDraft, onlyAfter?: number) {
    if (waiting.length >= maxWaiting) return Promise.reject(unavailable())
    const { promise, resolve, reject } = Promise.withResolvers<Appended | undefined>()
    waiting.push({
      draft,
      onlyAfter,
      end: { sequence: 0, closed: false },
      origin: activeContext(),
      tries: 0,
      resolve,
      reject,
    })
    metrics.logQueueLength.set(waiting.length)
    if (!isStarting) {
      if (inFlight === 0) idle = Promise.withResolvers()
      isStarting = true
      // Starts after the current synchronous code, so that the batch has all its events.
      queueMicrotask(start)
    }
    return promise
  }

  return {
    /**
     * Appends an event. When the call resolves, the event survives the loss of any process. If the
     * conversation is closed, a message or a request for a person reopens it: `conversation.reopened` is
     * appended before. An event that closes a closed conversation or reopens an open one is not appended,
     * and the answer is `replayed`.
     *
     * Errors: `IdempotencyConflict` when the operation key was used with different input.
     * `ServiceUnavailable` when the store failed or the queue is full. It is then unknown whether the
     * log has the event, and the caller can safely retry.
     */
    append: (draft: EventDraft) => enqueue(draft) as Promise<Appended>,
    /**
     * Like `append`, but only if `end` is the end of the log. Otherwise returns undefined. So a caller
     * that reads the end, then a state whose changes are events, decides on the latest state.
     */
    appendAfter: (end: number, draft: EventDraft) => enqueue(draft, end),
    /** Returns the presumed end of a log. The log may have later events. */
    endOf: async (conversationId: string) => (await heads.get([conversationId]))[0]!.sequence,
    drain: () => idle.promise,
  }
})

const operationOf = ({ conversationId, operationKey }: EventDraft) => `${conversationId} ${operationKey}`

const reopens = (draft: EventDraft) => isEntry(draft) || draft.type === 'human.requested'

const opens = (draft: EventDraft) => reopens(draft) || draft.type === 'conversation.reopened'

/**
 * A visitor waits from the first message or form after an answer, from a bot's request for a person, or from
 * the end of an answer that has no text.
 */
function waitingAfter(draft: EventDraft, end: LogEnd, occurredAt: Date) {
  const { type, message } = draft
  if (isCompletion(draft)) return end.waitingSince ?? (message?.body.trim() ? undefined : occurredAt)
  const begins = message ? message.author.kind === 'visitor' : type === 'human.requested' || type === 'form.submitted'
  if (begins) return end.waitingSince ?? occurredAt
  return message ? undefined : end.waitingSince
}

/** Returns the event with its sequence: the one after the end of its log. */
function eventAfter(end: LogEnd, { transient, ...draft }: EventDraft, occurredAt: Date): LogEvent {
  const closed = draft.type === 'conversation.closed' || (end.closed && !opens(draft))
  return {
    ...draft,
    sequence: end.sequence + 1,
    occurredAt,
    closed: closed || undefined,
    waitingSince: waitingAfter(draft, end, occurredAt),
    transient,
    removableAt: transient && new Date(occurredAt.getTime() + transientMs),
  }
}

const reopened = ({ conversationId }: EventDraft): EventDraft => ({ conversationId, type: 'conversation.reopened' })
