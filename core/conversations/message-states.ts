/**
 * Changes the states of messages. The event is written first, then the message is updated. The
 * event is marked as unapplied until its message is updated, so that `reconcileMessageStates` can repair
 * a crash between the two writes.
 */

import { createSlots } from '../../platform/concurrency/slots.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { logFailure, type Scope } from '../errors.ts'
import { logOf } from '../log/event-log.ts'
import { toEvent } from '../log/event-store.ts'
import { type LogEvent, type MessageState, operationKeys } from '../log-event.ts'
import { field, oneOf, validate } from '../rules.ts'
import type { VisitorCredentials } from '../sessions/model.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { requireCapability } from '../workspaces/model.ts'
import { findConversation } from './conversation-access.ts'
import { before, isReceipt, stateOf } from './model.ts'

const maxChanges = 100
const maxCounted = 10_000
const maxWaiting = 10_000
/** Maximum number of receipts that run at once. More of them would delay sends. */
const receiptsMax = 8
/** Age in milliseconds at which the writer of an unapplied event is treated as dead. */
const abandonedMs = 10_000
/** Bodies are large, and a change of states needs none. */
const withoutBody = { 'message.body': 0 }

/**
 * Advances the visitor's messages up to a sequence to `sent`, `delivered` or `read`: at most 100 in one
 * call, oldest first. Errors: NotFound, ValidationFailed, ServiceUnavailable.
 */
export async function updateMessageStates(
  core: Core,
  { conversationId, upToSequence, state }: { conversationId: string; upToSequence: number; state: string },
  scope: Scope,
): Promise<{ changed: number; remaining: number }> {
  await findConversation(core, conversationId, scope)
  validate(field('/state', state, oneOf<string>('sent', 'delivered', 'read')))
  const target = state as MessageState
  const selected = {
    conversationId,
    sequence: { $lte: upToSequence },
    type: 'message.accepted' as const,
    ...inState(before(target)),
  }
  const oldest = { projection: withoutBody, sort: { sequence: 1 }, limit: maxChanges } as const
  const messages = await core.db.events.find(selected, oldest).toArray()
  await change(core, messages, target)
  const remaining =
    messages.length < maxChanges ? 0 : await core.db.events.countDocuments(selected, { limit: maxCounted })
  return { changed: messages.length, remaining }
}

const receiptsOf = perCore(() => createSlots({ max: receiptsMax }))

/**
 * Advances agents' messages up to a sequence to `delivered` or `read`. Writes one event, for the latest
 * of these messages, unless that message has reached the state. Errors: those of VisitorAccess.authorize,
 * RouteNotAdvertised, ValidationFailed, ServiceUnavailable.
 */
export async function recordReceipt(
  core: Core,
  { credentials, upToSequence, state }: { credentials: VisitorCredentials; upToSequence: number; state: string },
) {
  const { session, installation } = await visitorAccessOf(core).authorize(credentials)
  requireCapability(installation, 'receipts')
  validate(field('/state', state, oneOf<string>('delivered', 'read')))
  const target = state as MessageState
  const { conversationId } = session
  // Receipts of one conversation run one after another. Of equal receipts, only the first changes messages.
  await receiptsOf(core).run(async () => {
    const newest = { projection: withoutBody, sort: { sequence: -1 } } as const
    const latest = await core.db.events.findOne(agentMessages(conversationId, upToSequence), newest)
    if (latest && before(target).includes(stateOf(latest))) await change(core, [latest], target)
  }, [{ key: conversationId, max: 1 }])
}

/** Messages that operators have read and that are not marked as sent yet. */
export const sentMarksOf = perCore((core) => {
  let waiting = new Map<string, LogEvent>()
  /** Events that `mark` has handled. Every open inbox reports the same events. */
  const taken = new WeakSet<LogEvent>()

  const sending = createSingleFlight(
    () => waiting.size > 0,
    async () => {
      const messages = [...waiting.values()]
      waiting = new Map()
      try {
        await change(core, messages, 'sent')
      } catch (error) {
        for (const message of messages) taken.delete(message)
        logFailure(core.logger, 'marking messages as sent failed; the next read will retry')(error)
      }
    },
  )

  return {
    /** Marks the visitor's messages among these events as sent, because an operator has read them. */
    mark(events: LogEvent[]) {
      for (const event of events) {
        if (event.type !== 'message.accepted' || stateOf(event) !== 'queued') continue
        if (taken.has(event) || waiting.size >= maxWaiting) continue
        taken.add(event)
        waiting.set(event.message!.messageId, event)
      }
      if (waiting.size > 0) void sending.run()
    },

    drain: sending.settled,
  }
})

/**
 * Applies the events that a dead process wrote but did not apply to their messages. Returns them: those of
 * other kinds are left to the caller.
 */
export async function reconcileMessageStates(core: Core): Promise<LogEvent[]> {
  const until = dateOf(core, -abandonedMs)
  const abandoned = { unapplied: true, occurredAt: { $lte: until } } as const
  const left = (await core.db.events.find(abandoned, { limit: maxCounted }).toArray()).map(toEvent)
  await applyStates(core, left)
  return left
}

async function change(core: Core, messages: LogEvent[], state: MessageState) {
  const appended = await Promise.all(
    messages.map(({ conversationId, sequence, message }) => {
      const { messageId, clientOperationId } = message!
      return logOf(core).append({
        conversationId,
        type: 'message.state.changed',
        operationKey: operationKeys.messageState(messageId, state),
        inputHash: state,
        data: { messageId, clientOperationId, state },
        messageSequence: sequence,
        unapplied: true,
      })
    }),
  )
  await applyStates(
    core,
    appended.map(({ event }) => event),
  )
}

/**
 * Sets each message to the state of its event, unless it is in a later one, and marks the event as
 * applied. A receipt also changes the agents' messages before, newest first, up to one that has already
 * reached the state, at most 100.
 */
export async function applyStates(core: Pick<Core, 'db'>, events: LogEvent[]) {
  const changes = events.filter(({ messageSequence, data }) => messageSequence !== undefined && data?.state)
  if (changes.length === 0) return
  // After an election, the driver retries only updates of a single document.
  const updates = await Promise.all(
    changes.map(async (change) => {
      const { conversationId, messageSequence, data } = change
      const state = data!.state!
      const sequences = isReceipt(change) ? await received(core, change, state) : [messageSequence!]
      return sequences.map((sequence) => ({
        updateOne: {
          filter: { conversationId, sequence, ...inState(before(state)) },
          update: { $set: { currentState: state } },
        },
      }))
    }),
  )
  if (updates.some(({ length }) => length > 0)) await core.db.events.bulkWrite(updates.flat(), { ordered: false })
  await markApplied(core, changes)
}

async function received({ db }: Pick<Core, 'db'>, { conversationId, messageSequence }: LogEvent, state: MessageState) {
  const projection = { sequence: 1, currentState: 1, 'message.state': 1 }
  const newest = { projection, sort: { sequence: -1 }, limit: maxChanges } as const
  const latest = await db.events.find(agentMessages(conversationId, messageSequence!), newest).toArray()
  const reached = latest.findIndex((event) => !before(state).includes(stateOf(event)))
  return (reached < 0 ? latest : latest.slice(0, reached)).map(({ sequence }) => sequence)
}

export async function markApplied({ db }: Pick<Core, 'db'>, applied: Pick<LogEvent, 'conversationId' | 'sequence'>[]) {
  if (applied.length === 0) return
  await db.events.bulkWrite(
    applied.map(({ conversationId, sequence }) => ({
      updateOne: { filter: { conversationId, sequence }, update: { $unset: { unapplied: '' as const } } },
    })),
    { ordered: false },
  )
}

const inState = (states: MessageState[]) => ({
  $or: [
    { currentState: { $in: states } },
    { currentState: { $exists: false as const }, 'message.state': { $in: states } },
  ],
})

const agentMessages = (conversationId: string, upTo: number) => ({
  conversationId,
  sequence: { $lte: upTo },
  type: 'message.received' as const,
})
