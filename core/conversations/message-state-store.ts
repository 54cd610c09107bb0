import type { Collection } from 'mongodb'
import type { EventDocument } from '../log/event-store.ts'
import type { LogEvent, MessageState } from '../log/model.ts'
import type { MessageStateChange } from './model.ts'

export interface MessageStateStore {
  /**
   * Returns the visitor's messages up to a sequence that are in one of these states, oldest first.
   */
  visitorMessages(
    query: { conversationId: string; upTo: number; states: MessageState[] },
    limit: number,
  ): Promise<LogEvent[]>
  /**
   * Counts the visitor's messages up to a sequence that are in one of these states. Stops counting
   * at `limit`.
   */
  count(query: { conversationId: string; upTo: number; states: MessageState[] }, limit: number): Promise<number>
  /**
   * Sets each message to the state of its event and marks the event as applied. A message that is
   * already in a later state is not changed.
   */
  apply(changes: MessageStateChange[]): Promise<void>
  /**
   * Returns state events before a time whose change is not applied. Their process died before it
   * applied them.
   */
  unapplied(before: Date, limit: number): Promise<LogEvent[]>
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
