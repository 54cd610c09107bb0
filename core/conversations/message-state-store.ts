import type { Collection } from 'mongodb'
import type { EventDocument } from '../log/event-store.ts'
import type { LogEvent, MessageState } from '../log/model.ts'

export interface MessageStateStore {
  /** The visitor's messages up to a sequence in one of these states, oldest first. */
  visitorMessages(
    query: { conversationId: string; upTo: number; states: MessageState[] },
    limit: number,
  ): Promise<LogEvent[]>
  /** Counts them, up to `limit`. */
  count(query: { conversationId: string; upTo: number; states: MessageState[] }, limit: number): Promise<number>
  /**
   * Sets each message to its event's state, unless it is further already, and marks the event as
   * applied.
   */
  apply(changes: MessageStateChange[]): Promise<void>
  /** Events from before a time whose messages were not updated, because of a crash. */
  unapplied(before: Date, limit: number): Promise<LogEvent[]>
}

export interface MessageStateChange {
  conversationId: string
  /** Of the event that describes the change. */
  sequence: number
  /** Of the message. */
  messageSequence: number
  state: MessageState
  /** The states that it may replace. */
  from: MessageState[]
}

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

  return {
    async visitorMessages(query, limit) {
      const found = await events.find(selected(query)).sort({ sequence: 1 }).limit(limit).toArray()
      return found.map(({ _id, ...event }) => event)
    },

    count: (query, limit) => events.countDocuments(selected(query), { limit }),

    async apply(changes) {
      if (changes.length === 0) return
      await events.bulkWrite(
        changes.map(({ conversationId, messageSequence, state, from }) => ({
          updateOne: {
            filter: { conversationId, sequence: messageSequence, ...inState(from) },
            update: { $set: { currentState: state } },
          },
        })),
        { ordered: false },
      )
      await events.bulkWrite(
        changes.map(({ conversationId, sequence }) => ({
          updateOne: { filter: { conversationId, sequence }, update: { $unset: { unapplied: '' as const } } },
        })),
        { ordered: false },
      )
    },

    async unapplied(before, limit) {
      const found = await events
        .find({ unapplied: true, occurredAt: { $lte: before } })
        .limit(limit)
        .toArray()
      return found.map(({ _id, ...event }) => event)
    },
  }
}
