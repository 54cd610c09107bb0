/**
 * Messages of bots that gain text call by call. The text so far is in the event of the message, and
 * one conditional write of this event decides each step on all cores: the next text, the end, a stop.
 * Steps of different messages that arrive together are one write. A message that has ended gets its
 * event `message.completed` afterwards; `growth.until` marks it until then, so that any core completes
 * what a dead one began.
 */

import type { AppendBotMessageRequest } from '#proto/bot/v1/bot_pb.js'
import type { ProtoFields } from '../../contract/proto-fields.ts'
import { createBatcher, fulfilled } from '../../platform/concurrency/batcher.ts'
import { createSlots } from '../../platform/concurrency/slots.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { invalid, ServiceError } from '../errors.ts'
import { queuePlaceOf } from '../log/conversation-model.ts'
import { recordStatus } from '../log/conversation-store.ts'
import { type Appended, logOf } from '../log/event-log.ts'
import { eventsOf, toEvent } from '../log/event-store.ts'
import { type GrowthState, type LogEvent, operationKeys } from '../log-event.ts'
import { msUntil } from '../mongodb/leases.ts'
import { field, messageBody, text, validate } from '../rules.ts'
import type { VisitorOperation } from '../sessions/model.ts'
import { oncePerSession, visitorAccessOf } from '../sessions/visitor-access.ts'
import { requireCapability } from '../workspaces/model.ts'

type GrowingEvent = LogEvent & Required<Pick<LogEvent, 'message' | 'growth'>>

/** `event` is the message as it was read. */
interface GrowthStep {
  event: GrowingEvent
  next: GrowingEvent
}

export type GrowthPart = Omit<ProtoFields<AppendBotMessageRequest>, 'bot'>

const overdueBatch = 200
/** Memory for messages that grow on this core, in characters of their texts. */
const rememberedChars = 8_000_000

export const growthOf = perCore((core) => {
  /** Any process may end a message, because the one that began it may die. */
  function began({ growth }: Pick<LogEvent, 'growth'> = {}) {
    if (growth?.until) core.bus.emit('due', 'end of growing messages', pauseMs(core))
  }
  core.bus.on('appended', began)
  core.bus.on('advanced', (_conversationId, _end, event) => began(event))

  /** Messages as this core has last seen them, by operation. The stored message may be ahead. */
  const seen = createLruCache<GrowingEvent>(rememberedChars, ({ message }) => 200 + message.body.length)

  return {
    seen,
    turns: createSlots({ max: Number.POSITIVE_INFINITY }),
    writes: createBatcher((steps: GrowthStep[]) => writeSteps(core, steps), { maxInFlight: 1 }),
  }
})

const pauseMs = ({ config }: Core) => config.ANSWER_PAUSE_SECONDS * 1000

/**
 * Adds text to a message. `begin` creates the message at the first call. Errors: those of `begin`,
 * ValidationFailed, IdempotencyConflict, ServiceUnavailable.
 */
export function appendGrowth(core: Core, part: GrowthPart, begin: () => Promise<Appended>) {
  return growthOf(core).turns.run(() => appendInTurn(core, part, begin), [{ key: keyOf(part), max: 1 }])
}

async function appendInTurn(core: Core, part: GrowthPart, begin: () => Promise<Appended>) {
  const { seen } = growthOf(core)
  const key = keyOf(part)
  let remembered = seen.get(key)
  seen.delete(key)
  for (;;) {
    const event = remembered ?? (await find(core, part))
    const kind = event ? classify(event, part) : 'first'
    const grown =
      event === undefined
        ? await beginWith(core, part, begin)
        : kind === 'next' || kind === 'end'
          ? await write(core, event, kind === 'next' ? part : endOf(event, part), remembered !== undefined)
          : undefined
    if (grown) return grown
    if (event && !remembered && (kind === 'repeat' || kind === 'late')) {
      seen.set(key, event)
      if (event.growth.state !== 'growing') await complete(core, event)
      return grownOf(event, kind === 'repeat')
    }
    if (!remembered && kind === 'beyond') throw invalid('/offset', 'offset')
    if (!remembered && kind === 'conflict') throw new ServiceError('IdempotencyConflict')
    // What is remembered may be behind the stored message.
    remembered = undefined
  }
}

async function find(core: Core, { conversationId, clientOperationId }: GrowthPart) {
  const operationKey = operationKeys.botMessage(clientOperationId)
  const [event] = await eventsOf(core).findOperations([{ conversationId, operationKey }])
  // The id belongs to a message that was sent whole.
  if (event && !event.growth) throw new ServiceError('IdempotencyConflict')
  return event as GrowingEvent | undefined
}

async function beginWith(core: Core, part: GrowthPart, begin: () => Promise<Appended>) {
  if (part.offset > 0) throw invalid('/offset', 'offset')
  if (part.done) validate(field('/text', part.text, messageBody(core.config.MESSAGE_BODY_MAX_LENGTH)))
  const { event, replayed } = await begin()
  if (replayed) return undefined
  const begun = event as GrowingEvent
  growthOf(core).seen.set(keyOf(part), begun)
  return part.done ? write(core, begun, endOf(begun, part)) : grownOf(begun, false)
}

/**
 * Writes the next text of a message. Returns undefined if the stored message has changed since it was read, or
 * if the text is invalid after a remembered message, which the stored one may have passed.
 */
async function write(core: Core, event: GrowingEvent, part: GrowthPart, isRemembered = false) {
  const next = nextOf(core, event, part)
  const max = core.config.MESSAGE_BODY_MAX_LENGTH
  const issue = field('/text', next.message.body, part.done ? messageBody(max) : text(0, max))
  if (issue && isRemembered) return undefined
  validate(issue)
  const { seen, writes } = growthOf(core)
  if (!(await writes.add({ event, next }))) return undefined
  seen.set(keyOf(part), next)
  const { conversationId, sequence, message, growth } = next
  if (growth.state !== 'growing') await complete(core, next)
  else if (part.text !== '') {
    const { messageId } = message
    core.bus.emit('grew', { conversationId, messageId, sequence, offset: event.growth.length, text: part.text })
  }
  return grownOf(next, false)
}

function nextOf(core: Core, event: GrowingEvent, { text: gained, done, quickReplies }: GrowthPart): GrowingEvent {
  const body = event.message.body + gained
  return {
    ...event,
    message: { ...event.message, body, ...(quickReplies.length > 0 && { quickReplies }) },
    growth: {
      length: event.growth.length + lengthOf(gained),
      state: done ? 'completed' : 'growing',
      until: dateOf(core, done ? 0 : pauseMs(core)),
    },
  }
}

/** Writes the next texts. The result is false for a message that has changed since it was read. */
async function writeSteps({ db }: Core, steps: GrowthStep[]) {
  const { matchedCount } = await db.events.bulkWrite(
    steps.map(({ event, next: { message, growth } }) => ({
      updateOne: {
        filter: { ...placeOf(event), 'growth.state': 'growing', 'growth.length': event.growth.length },
        update: {
          $set: { 'message.body': message.body, 'message.quickReplies': message.quickReplies, growth },
        },
      },
    })),
    { ordered: false },
  )
  if (matchedCount === steps.length) return fulfilled(steps.map(() => true))
  // The result does not say which messages have changed.
  const found = await db.events.find({ $or: steps.map(({ event }) => placeOf(event)) }).toArray()
  const isWritten = ({ next: { message, growth } }: GrowthStep) => {
    const stored = found.find((each) => each.message?.messageId === message.messageId)
    const isSame = stored?.message?.body === message.body && stored.growth?.state === growth.state
    return isSame && stored?.growth?.until?.getTime() === growth.until?.getTime()
  }
  return fulfilled(steps.map(isWritten))
}

/** Appends the event `message.completed` of a message that has ended. Returns its sequence. */
async function complete(core: Core, event: GrowingEvent) {
  const { conversationId, sequence, occurredAt, message, growth } = event
  if (growth.end !== undefined) return growth.end
  const completion = await logOf(core).append({
    conversationId,
    type: 'message.completed',
    operationKey: operationKeys.completion(message.messageId),
    inputHash: message.messageId,
    message,
    messageSequence: sequence,
    begunAt: occurredAt,
  })
  const end = completion.event.sequence
  // An empty answer does not count as an answer, so the visitor is waiting again.
  if (!message.body.trim()) await recordStatus(core, [{ conversationId, queue: queuePlaceOf(completion.event) }])
  await core.db.events.updateOne(placeOf(event), { $set: { 'growth.end': end }, $unset: { 'growth.until': '' } })
  return end
}

/**
 * Stops a message for its visitor. Returns the sequence of its event `message.completed`. Errors: those of
 * VisitorAccess.authorize, RouteNotAdvertised, NotFound if the message never grew, IdempotencyConflict,
 * ServiceUnavailable.
 */
export async function stopAnswer(
  core: Core,
  { credentials, messageId, idempotencyKey }: VisitorOperation & { messageId: string },
) {
  const { session, installation } = await visitorAccessOf(core).authorize(credentials)
  requireCapability(installation, 'stopAnswer')
  const stop = () => stopIn(core, session.conversationId, messageId)
  const route = 'POST /messages/stop'
  const { content, replayed } = await oncePerSession(core, route, session, idempotencyKey, { messageId }, stop)
  return { ...content, replayed }
}

async function stopIn(core: Core, conversationId: string, messageId: string) {
  const found = (await growingIn(core, conversationId)).find(({ message }) => message.messageId === messageId)
  const stopped = found && (await end(core, found, 'stopped'))
  if (stopped) return stopped
  const events = eventsOf(core)
  const operationKey = operationKeys.completion(messageId)
  const [completion] = await events.findOperations([{ conversationId, operationKey }])
  if (!completion) throw new ServiceError('NotFound')
  const [event] = await events.at([{ conversationId, sequence: completion.messageSequence ?? 0 }])
  return { messageId, state: event?.growth?.state ?? 'completed', sequence: completion.sequence }
}

export async function interruptGrowth(core: Core, event: LogEvent) {
  await end(core, event, 'interrupted')
}

export async function interruptGrowthIn(core: Core, conversationId: string) {
  for (const event of await growingIn(core, conversationId)) await end(core, event, 'interrupted')
}

/**
 * Interrupts messages without a recent append, and completes what a dead process has ended. Returns
 * the time in milliseconds until the next message is overdue.
 */
export async function endOverdueGrowth(core: Core): Promise<number | undefined> {
  const at = dateOf(core)
  const overdue = await findGrowing(core, { 'growth.until': { $lte: at } }, overdueBatch)
  await Promise.all(overdue.map((event) => end(core, event, 'interrupted', at)))
  const marked = { 'growth.until': { $exists: true } }
  const earliest = { hint: 'growing', projection: { growth: 1 }, sort: { 'growth.until': 1 } } as const
  const next = await core.db.events.findOne(marked, earliest)
  return msUntil(next?.growth?.until, core.now)
}

/** Ends a message. With `overdueAt`, only if it is overdue at that time. Returns undefined if it then grows on. */
async function end(core: Core, event: LogEvent, state: GrowthState, overdueAt?: Date) {
  const changed = await core.db.events.findOneAndUpdate(
    { ...placeOf(event), 'growth.state': 'growing', ...(overdueAt && { 'growth.until': { $lte: overdueAt } }) },
    { $set: { 'growth.state': state, 'growth.until': dateOf(core), 'message.ended': state } },
    { returnDocument: 'after' },
  )
  const ended = changed ? toEvent(changed) : (await eventsOf(core).at([placeOf(event)]))[0]
  if (!ended?.growth || !ended.message || ended.growth.state === 'growing') return undefined
  const { messageId } = ended.message
  return { messageId, state: ended.growth.state, sequence: await complete(core, ended as GrowingEvent) }
}

/** Returns the messages of a conversation that grow, or have no event `message.completed` yet. */
const growingIn = (core: Core, conversationId: string) =>
  findGrowing(core, { conversationId, 'growth.until': { $exists: true } })

const findGrowing = async ({ db }: Core, filter: object, limit = 0) =>
  (await db.events.find(filter, { hint: 'growing', limit }).toArray()).map(toEvent) as GrowingEvent[]

const lengthOf = (value: string) => [...value].length

const placeOf = ({ conversationId, sequence }: LogEvent) => ({ conversationId, sequence })

const endOf = ({ growth }: GrowingEvent, part: GrowthPart) => ({ ...part, offset: growth.length, text: '' })

const keyOf = ({ conversationId, clientOperationId }: GrowthPart) => `${conversationId} ${clientOperationId}`

const grownOf = ({ message: { messageId }, growth: { length, state } }: GrowingEvent, replayed: boolean) => ({
  messageId,
  length,
  state,
  replayed,
})

/**
 * Classifies a part: the `next` text, the `end`, a `repeat` of accepted text, text that is too `late` because
 * the message has ended, a `conflict` with the accepted text, or text `beyond` the end.
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
