import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { createBatcher } from '../../platform/concurrency/batcher.ts'
import { createSlots } from '../../platform/concurrency/slots.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import type { Bus } from '../bus.ts'
import { invalid, ServiceError } from '../errors.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import type { EventLog } from '../log/event-log.ts'
import type { EventStore } from '../log/event-store.ts'
import { type GrowthState, type LogEvent, operationKeys } from '../log-event.ts'
import { msUntil } from '../mongodb/leases.ts'
import { field, messageBody, text, validate } from '../rules.ts'
import type { VisitorCredentials } from '../sessions/model.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import { requireCapability } from '../workspaces/capabilities.ts'
import type { GrowingEvent, GrowthStep, GrowthStore } from './growth-store.ts'
import type { Sent } from './messages.ts'

/** Text that a bot adds to its message. */
export interface GrowthPart {
  conversationId: string
  clientOperationId: string
  offset: number
  text: string
  done: boolean
  quickReplies: string[]
}

export interface Grown {
  messageId: string
  length: number
  state: GrowthState
  replayed: boolean
}

export interface Stopped {
  messageId: string
  state: GrowthState
  /** Sequence of the event `message.completed`. */
  sequence: number
}

export interface GrowingMessages {
  /**
   * Adds text to a message. `begin` creates the message at the first call. Errors: those of `begin`,
   * ValidationFailed, IdempotencyConflict, ServiceUnavailable.
   */
  append(part: GrowthPart, begin: () => Promise<Sent>): Promise<Grown>
  /**
   * Stops a message for its visitor. Errors: those of VisitorAccess.authorize, RouteNotAdvertised,
   * NotFound if the message never grew, IdempotencyConflict, ServiceUnavailable.
   */
  stop(request: {
    credentials: VisitorCredentials
    messageId: string
    idempotencyKey: string
  }): Promise<Stopped & { replayed: boolean }>
  /** Interrupts a message if it grows. */
  interrupt(event: LogEvent): Promise<void>
  /** Interrupts all messages that grow in a conversation. */
  interruptIn(conversationId: string): Promise<void>
  /**
   * Interrupts messages without a recent append, and completes what a dead process has ended. Returns
   * the time in milliseconds until the next message is overdue.
   */
  endOverdue(): Promise<number | undefined>
}

const overdueBatch = 200
/** Memory for messages that grow on this core, in characters of their texts. */
const rememberedChars = 8_000_000

/** Returns the code points of a text. */
const lengthOf = (value: string) => [...value].length

/**
 * Messages of bots that gain text call by call. The text so far is in the event of the message, and
 * one conditional write of this event decides each step on all cores: the next text, the end, a stop.
 * Steps of different messages that arrive together are one write. A message that has ended gets its
 * event `message.completed` afterwards; `growth.until` marks it until then, so that any core completes
 * what a dead one began.
 */
export function createGrowingMessages(dependencies: {
  log: Pick<EventLog, 'append'>
  events: Pick<EventStore, 'findOperations' | 'at'>
  store: GrowthStore
  access: Pick<VisitorAccess, 'authorize'>
  idempotency: Idempotency
  bus: Bus
  now: () => number
  settings: { bodyMaxLength: number; pauseMs: number; idempotencyRetention: number }
}): GrowingMessages {
  const { log, events, store, access, idempotency, bus, now, settings } = dependencies
  /** Messages as this core has last seen them, by operation. The stored message may be ahead. */
  const seen = createLruCache<GrowingEvent>(rememberedChars, ({ message }) => 200 + message.body.length)
  const turns = createSlots({ max: Number.POSITIVE_INFINITY, waitingMax: Number.POSITIVE_INFINITY })
  const writes = createBatcher((steps: GrowthStep[]) => store.grow(steps), { maxInFlight: 1 })

  /** Any process may end a message, because the one that began it may die. */
  function began({ growth }: Pick<LogEvent, 'growth'> = {}) {
    if (growth?.until) bus.emit('due', 'end of growing messages', settings.pauseMs)
  }
  bus.on('appended', began)
  bus.on('advanced', (_conversationId, _end, event) => began(event))

  async function find({ conversationId, clientOperationId }: GrowthPart): Promise<GrowingEvent | undefined> {
    const operationKey = operationKeys.botMessage(clientOperationId)
    const [event] = await events.findOperations([{ conversationId, operationKey }])
    // The id belongs to a message that was sent whole.
    if (event && !event.growth) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
    return event as GrowingEvent | undefined
  }

  function nextOf(event: GrowingEvent, { text: gained, done, quickReplies }: GrowthPart): GrowingEvent {
    const body = event.message.body + gained
    validate(field('/text', body, done ? messageBody(settings.bodyMaxLength) : text(0, settings.bodyMaxLength)))
    return {
      ...event,
      message: { ...event.message, body, ...(quickReplies.length > 0 && { quickReplies }) },
      growth: {
        length: event.growth.length + lengthOf(gained),
        state: done ? 'completed' : 'growing',
        until: new Date(now() + (done ? 0 : settings.pauseMs)),
      },
    }
  }

  /** Appends the event `message.completed` of a message that has ended. Returns its sequence. */
  async function complete(event: GrowingEvent): Promise<number> {
    const { conversationId, sequence, occurredAt, message, growth } = event
    if (growth.end !== undefined) return growth.end
    const completion = await log.append({
      conversationId,
      type: 'message.completed',
      operationKey: operationKeys.completion(message.messageId),
      inputHash: message.messageId,
      message,
      messageSequence: sequence,
      begunAt: occurredAt,
    })
    await store.recordEnd(event, completion.event.sequence)
    return completion.event.sequence
  }

  /** Writes the next text of a message. Returns undefined if the stored message has changed since it was read. */
  async function write(event: GrowingEvent, part: GrowthPart): Promise<Grown | undefined> {
    const next = nextOf(event, part)
    if (!(await writes.add({ event, next }))) return undefined
    seen.set(keyOf(part), next)
    const { conversationId, sequence, message, growth } = next
    if (growth.state !== 'growing') await complete(next)
    else if (part.text !== '') {
      const { messageId } = message
      bus.emit('grew', { conversationId, messageId, sequence, offset: event.growth.length, text: part.text })
    }
    return grownOf(next, false)
  }

  async function beginWith(part: GrowthPart, begin: () => Promise<Sent>): Promise<Grown | undefined> {
    if (part.offset > 0) throw invalid('/offset', 'offset')
    if (part.done) validate(field('/text', part.text, messageBody(settings.bodyMaxLength)))
    const { event, replayed } = await begin()
    if (replayed) return undefined
    const begun = event as GrowingEvent
    seen.set(keyOf(part), begun)
    return part.done ? write(begun, endOf(begun, part)) : grownOf(begun, false)
  }

  async function appendInTurn(part: GrowthPart, begin: () => Promise<Sent>): Promise<Grown> {
    const key = keyOf(part)
    let remembered = seen.get(key)
    seen.delete(key)
    for (;;) {
      const event = remembered ?? (await find(part))
      const kind = event ? classify(event, part) : 'first'
      const grown =
        event === undefined
          ? await beginWith(part, begin)
          : kind === 'next'
            ? await write(event, part)
            : kind === 'end'
              ? await write(event, endOf(event, part))
              : undefined
      if (grown) return grown
      if (event && !remembered && (kind === 'repeat' || kind === 'late')) {
        seen.set(key, event)
        if (event.growth.state !== 'growing') await complete(event)
        return grownOf(event, kind === 'repeat')
      }
      if (!remembered && kind === 'beyond') throw invalid('/offset', 'offset')
      if (!remembered && kind === 'conflict') throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
      // What is remembered may be behind the stored message.
      remembered = undefined
    }
  }

  /** Ends a message. With `overdueAt`, only if it is overdue at that time. Returns undefined if it then grows on. */
  async function end(event: LogEvent, state: GrowthState, overdueAt?: Date): Promise<Stopped | undefined> {
    const ended = (await store.end(event, state, new Date(now()), overdueAt)) ?? (await events.at([placeOf(event)]))[0]
    if (!ended?.growth || !ended.message || ended.growth.state === 'growing') return undefined
    const { messageId } = ended.message
    return { messageId, state: ended.growth.state, sequence: await complete(ended as GrowingEvent) }
  }

  async function stopIn(conversationId: string, messageId: string): Promise<Stopped> {
    const growing = await store.growingIn(conversationId)
    const found = growing.find(({ message }) => message.messageId === messageId)
    const stopped = found && (await end(found, 'stopped'))
    if (stopped) return stopped
    const operationKey = operationKeys.completion(messageId)
    const [completion] = await events.findOperations([{ conversationId, operationKey }])
    if (!completion) throw new ServiceError(ErrorCode.NOT_FOUND)
    const [event] = await events.at([{ conversationId, sequence: completion.messageSequence ?? 0 }])
    return { messageId, state: event?.growth?.state ?? 'completed', sequence: completion.sequence }
  }

  return {
    append: (part, begin) => {
      const oneAtATime = { key: keyOf(part), max: 1, waitingMax: Number.POSITIVE_INFINITY }
      return turns.run(() => appendInTurn(part, begin), [oneAtATime])
    },

    async stop({ credentials, messageId, idempotencyKey }) {
      const { session, installation } = await access.authorize(credentials)
      requireCapability(installation, 'stopAnswer')
      const { sessionId, conversationId } = session
      const { result, replayed } = await idempotency.once({
        scope: ['POST /messages/stop', sessionId],
        sessionId,
        key: idempotencyKey,
        input: { messageId },
        keptFor: settings.idempotencyRetention,
        run: () => stopIn(conversationId, messageId),
      })
      return { ...result, replayed }
    },

    async interrupt(event) {
      await end(event, 'interrupted')
    },

    async interruptIn(conversationId) {
      for (const event of await store.growingIn(conversationId)) await end(event, 'interrupted')
    },

    async endOverdue() {
      const at = new Date(now())
      const overdue = await store.overdue(at, overdueBatch)
      await Promise.all(overdue.map((event) => end(event, 'interrupted', at)))
      return msUntil(await store.nextUntil(), now)
    },
  }
}

const placeOf = ({ conversationId, sequence }: LogEvent) => ({ conversationId, sequence })

/** Returns the part that ends a message after its present text. */
const endOf = ({ growth }: GrowingEvent, part: GrowthPart): GrowthPart => ({ ...part, offset: growth.length, text: '' })

const keyOf = ({ conversationId, clientOperationId }: GrowthPart) => `${conversationId} ${clientOperationId}`

const grownOf = ({ message: { messageId }, growth: { length, state } }: GrowingEvent, replayed: boolean): Grown => ({
  messageId,
  length,
  state,
  replayed,
})

/**
 * Says what a part is for a message: its next text, its end, a repeat of accepted text, text for a message
 * that has ended, another text than the accepted one, or text beyond the end.
 */
function classify(
  { message: { body, redactedAt, quickReplies = [] }, growth: { state, length } }: GrowingEvent,
  { offset, text: gained, done, quickReplies: replies }: GrowthPart,
): 'next' | 'end' | 'repeat' | 'late' | 'conflict' | 'beyond' {
  if (offset > length) return 'beyond'
  if (redactedAt) return 'late'
  const end = offset + lengthOf(gained)
  if (offset === length && (gained !== '' || !done)) return state === 'growing' ? 'next' : 'late'
  if ([...body].slice(offset, end).join('') !== gained) return 'conflict'
  if (!done) return 'repeat'
  // A last text ends at the end of the message.
  if (end !== length) return 'conflict'
  if (state === 'growing') return 'end'
  if (state !== 'completed') return 'late'
  return quickReplies.join('\n') === replies.join('\n') ? 'repeat' : 'conflict'
}
