import type { AnyBulkWriteOperation, Collection, WithId } from 'mongodb'
import type { EventDocument } from '../log/event-store.ts'
import { withdrawal } from '../log/message-model.ts'
import type { LogEvent, MessageState } from '../log-event.ts'
import { type MessageStateChange, stateOf } from './model.ts'

export interface MessageStateStore {
  /**
   * Returns the visitor's messages in one of these states, up to a sequence, oldest first. Leaves
   * out their bodies.
   */
  visitorMessages(
    query: { conversationId: string; upTo: number; states: MessageState[] },
    limit: number,
  ): Promise<LogEvent[]>
  /**
   * Counts the visitor's messages in one of these states, up to a sequence. Stops counting at
   * `limit`.
   */
  count(query: { conversationId: string; upTo: number; states: MessageState[] }, limit: number): Promise<number>
  /** Returns the latest agent's message up to a sequence, without its body. */
  latestAgentMessage(conversationId: string, upTo: number): Promise<LogEvent | undefined>
  /**
   * Sets each message to the state of its event and marks the event as applied. A message that is
   * already in a later state is not changed. For a receipt, also changes the agents' messages
   * before this message, newest first. Stops at a message that has already reached the state, and
   * after 100 messages.
   */
  apply(changes: MessageStateChange[]): Promise<void>
  /** Removes the texts of withdrawn messages. */
  redact(redactions: LogEvent[]): Promise<void>
  markApplied(events: LogEvent[]): Promise<void>
  /**
   * Returns unapplied events that occurred at this time or earlier. The process that wrote
   * them died before it applied them.
   */
  unapplied(before: Date, limit: number): Promise<LogEvent[]>
}

const maxReceived = 100
/** Bodies are large, and a change of states needs none. */
const withoutBody = { 'message.body': 0 }
type StateFields = Pick<LogEvent, 'sequence' | 'currentState' | 'message'>

export function createMessageStateStore({ events }: { events: Collection<EventDocument> }): MessageStateStore {
  const inState = (states: MessageState[]) => ({
    $or: [
      { currentState: { $in: states } },
      { currentState: { $exists: false as const }, 'message.state': { $in: states } },
    ],
  })

  const selected = (query: { conversationId: string; upTo: number; states: MessageState[] }) => ({
    conversationId: query.conversationId,
    sequence: { $lte: query.upTo },
    type: 'message.accepted' as const,
    ...inState(query.states),
  })

  const agentMessages = (conversationId: string, upTo: number) => ({
    conversationId,
    sequence: { $lte: upTo },
    type: 'message.received' as const,
  })

  /** Returns the agents' messages that a receipt changes. */
  async function received({ conversationId, messageSequence, from }: MessageStateChange): Promise<number[]> {
    const latest = await events
      .find(agentMessages(conversationId, messageSequence))
      .sort({ sequence: -1 })
      .limit(maxReceived)
      .project<StateFields>({ sequence: 1, currentState: 1, 'message.state': 1 })
      .toArray()
    const reached = latest.findIndex((event) => !from.includes(stateOf(event)))
    return (reached < 0 ? latest : latest.slice(0, reached)).map(({ sequence }) => sequence)
  }

  async function markApplied(applied: Pick<LogEvent, 'conversationId' | 'sequence'>[]) {
    if (applied.length === 0) return
    await events.bulkWrite(
      applied.map(({ conversationId, sequence }) => ({
        updateOne: { filter: { conversationId, sequence }, update: { $unset: { unapplied: '' as const } } },
      })),
      { ordered: false },
    )
  }

  return {
    async visitorMessages(query, limit) {
      const found = await events
        .find(selected(query))
        .sort({ sequence: 1 })
        .limit(limit)
        .project<WithId<EventDocument>>(withoutBody)
        .toArray()
      return found.map(({ _id, ...event }) => event)
    },

    count: (query, limit) => events.countDocuments(selected(query), { limit }),

    async latestAgentMessage(conversationId, upTo) {
      const [found] = await events
        .find(agentMessages(conversationId, upTo))
        .sort({ sequence: -1 })
        .limit(1)
        .project<WithId<EventDocument>>(withoutBody)
        .toArray()
      if (!found) return undefined
      const { _id, ...event } = found
      return event
    },

    async apply(changes) {
      if (changes.length === 0) return
      const sequences = await Promise.all(
        changes.map(async (change) => (change.isReceipt ? received(change) : [change.messageSequence])),
      )
      // After an election, the driver retries only updates of a single document. So each message
      // has its own update.
      const updates = changes.flatMap(({ conversationId, state, from }, index) =>
        sequences[index]!.map((sequence) => ({
          updateOne: {
            filter: { conversationId, sequence, ...inState(from) },
            update: { $set: { currentState: state } },
          },
        })),
      )
      if (updates.length > 0) await events.bulkWrite(updates, { ordered: false })
      await markApplied(changes)
    },

    async redact(redactions) {
      if (redactions.length === 0) return
      await events.bulkWrite(
        redactions.map(
          ({ conversationId, messageSequence, occurredAt }): AnyBulkWriteOperation<EventDocument> => ({
            updateOne: {
              filter: { conversationId, sequence: messageSequence!, message: { $exists: true } },
              update: withdrawal(occurredAt),
            },
          }),
        ),
      )
    },

    markApplied,

    async unapplied(before, limit) {
      const found = await events
        .find({ unapplied: true, occurredAt: { $lte: before } })
        .limit(limit)
        .toArray()
      return found.map(({ _id, ...event }) => event)
    },
  }
}
