import type { Logger } from 'pino'
import { createSlots } from '../../platform/concurrency/slots.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import type { EventLog } from '../log/event-log.ts'
import { type LogEvent, type MessageState, operationKeys } from '../log-event.ts'
import { field, oneOf, validate } from '../rules.ts'
import type { VisitorCredentials } from '../sessions/model.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import { requireCapability } from '../workspaces/capabilities.ts'
import type { ConversationAccess } from './conversation-access.ts'
import type { MessageStateStore } from './message-state-store.ts'
import { before, isReceipt, type MessageStateChange, stateOf } from './model.ts'

export interface MessageStates {
  /**
   * Advances the visitor's messages up to a sequence to `sent`, `delivered` or `read`. One call
   * updates at most 100 messages, oldest first. Errors: NotFound if the conversation does not
   * exist, ValidationFailed, ServiceUnavailable.
   */
  update(
    request: { conversationId: string; upToSequence: number; state: string },
    workspaceId: string | undefined,
  ): Promise<{ changed: number; remaining: number }>
  /**
   * Advances agents' messages up to a sequence to `delivered` or `read`. Writes one event, for the
   * latest of these messages. Writes none if that message has already reached the state. Errors:
   * those of VisitorAccess.authorize, RouteNotAdvertised, ValidationFailed, ServiceUnavailable.
   */
  receive(receipt: { credentials: VisitorCredentials; upToSequence: number; state: string }): Promise<void>
  /**
   * Marks the visitor's messages among these events as sent, because an operator has read them.
   * Never waits or fails.
   */
  markSent(events: LogEvent[]): void
  /**
   * Applies the events that a dead process wrote but did not apply to their messages. Returns these
   * events, of which those of other kinds are left to the caller.
   */
  reconcile(): Promise<LogEvent[]>
  drain(): Promise<void>
}

const maxChanges = 100
const maxCounted = 10_000
const maxWaiting = 10_000
/** Maximum number of receipts that run at once. More of them would delay sends. */
const receiptsMax = 8
/** If an event is still unapplied at this age in milliseconds, its writer is treated as dead. */
const abandonedMs = 10_000

/**
 * Changes the states of messages. The event is written first, then the message is updated. The
 * event is marked as unapplied until its message is updated, so that `reconcile` can repair a crash
 * between the two writes.
 */
export function createMessageStates(dependencies: {
  store: MessageStateStore
  log: EventLog
  access: Pick<VisitorAccess, 'authorize'>
  conversationAccess: ConversationAccess
  logger: Logger
  now: () => number
}): MessageStates {
  const { store, log, access, conversationAccess, logger, now } = dependencies
  let waiting = new Map<string, LogEvent>()
  /**
   * Events that `markSent` has handled. It ignores them when they are reported again, because every
   * open inbox reports them.
   */
  const taken = new WeakSet<LogEvent>()
  const receipts = createSlots({ max: receiptsMax, waitingMax: Number.POSITIVE_INFINITY })

  async function change(messages: LogEvent[], state: MessageState) {
    const appended = await Promise.all(
      messages.map(({ conversationId, sequence, message }) => {
        const { messageId, clientOperationId } = message!
        return log.append({
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
    await store.apply(appended.flatMap(({ event }) => changeOf(event)))
  }

  const sending = createSingleFlight(
    () => waiting.size > 0,
    async () => {
      const messages = [...waiting.values()]
      waiting = new Map()
      try {
        await change(messages, 'sent')
      } catch (error) {
        for (const message of messages) taken.delete(message)
        logger.warn({ reason: (error as Error).name }, 'marking messages as sent failed; the next read will retry')
      }
    },
  )

  return {
    async update({ conversationId, upToSequence, state }, workspaceId) {
      await conversationAccess.find(conversationId, workspaceId)
      validate(field('/state', state, oneOf<string>('sent', 'delivered', 'read')))
      const target = state as MessageState
      const query = { conversationId, upTo: upToSequence, states: before(target) }
      const messages = await store.visitorMessages(query, maxChanges)
      await change(messages, target)
      const remaining = messages.length < maxChanges ? 0 : await store.count(query, maxCounted)
      return { changed: messages.length, remaining }
    },

    async receive({ credentials, upToSequence, state }) {
      const { session, installation } = await access.authorize(credentials)
      requireCapability(installation, 'receipts')
      validate(field('/state', state, oneOf<string>('delivered', 'read')))
      const target = state as MessageState
      const { conversationId } = session
      // Receipts of one conversation run one after another. Of equal receipts, only the first changes messages.
      const oneAtATime = { key: conversationId, max: 1, waitingMax: Number.POSITIVE_INFINITY }
      await receipts.run(async () => {
        const latest = await store.latestAgentMessage(conversationId, upToSequence)
        if (latest && before(target).includes(stateOf(latest))) await change([latest], target)
      }, [oneAtATime])
    },

    markSent(events) {
      for (const event of events) {
        if (event.type !== 'message.accepted' || stateOf(event) !== 'queued') continue
        if (taken.has(event) || waiting.size >= maxWaiting) continue
        taken.add(event)
        waiting.set(event.message!.messageId, event)
      }
      if (waiting.size > 0) void sending.run()
    },

    async reconcile() {
      const left = await store.unapplied(new Date(now() - abandonedMs), maxCounted)
      await store.apply(left.flatMap(changeOf))
      return left
    },

    drain: sending.settled,
  }
}

function changeOf(event: LogEvent): MessageStateChange[] {
  const { conversationId, sequence, messageSequence, data } = event
  if (messageSequence === undefined || data?.state === undefined) return []
  const { state } = data
  return [{ conversationId, sequence, messageSequence, state, from: before(state), isReceipt: isReceipt(event) }]
}
