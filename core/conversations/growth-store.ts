import type { Collection } from 'mongodb'
import type { EventDocument } from '../log/event-store.ts'
import { toEvent } from '../log/history-page-store.ts'
import type { GrowthState, LogEvent } from '../log-event.ts'

/** A message that grows: its event with `growth`. */
export type GrowingEvent = LogEvent & Required<Pick<LogEvent, 'message' | 'growth'>>

/** The next text of a message. `event` is the message as it was read. */
export interface GrowthStep {
  event: GrowingEvent
  next: GrowingEvent
}

export interface GrowthStore {
  /** Writes the next texts of different messages. Returns false for a message that has changed since it was read. */
  grow(steps: GrowthStep[]): Promise<PromiseSettledResult<boolean>[]>
  /**
   * Ends the growth of a message. Returns undefined and changes nothing if it does not grow, or, with
   * `overdueAt`, if it is not overdue at that time.
   */
  end(event: LogEvent, state: GrowthState, at: Date, overdueAt?: Date): Promise<GrowingEvent | undefined>
  /** Records that the log has the event `message.completed`. */
  recordEnd(event: LogEvent, end: number): Promise<void>
  /** Returns the messages of a conversation that grow, or have no event `message.completed` yet. */
  growingIn(conversationId: string): Promise<GrowingEvent[]>
  /** Returns messages that any core must complete. */
  overdue(at: Date, limit: number): Promise<GrowingEvent[]>
  /** Returns when the next message is overdue. */
  nextUntil(): Promise<Date | undefined>
}

export function createGrowthStore({ events }: { events: Collection<EventDocument> }): GrowthStore {
  const placeOf = ({ conversationId, sequence }: LogEvent) => ({ conversationId, sequence })
  const find = async (filter: object, limit = 0) =>
    (await events.find(filter, { hint: 'growing' }).limit(limit).toArray()).map(toEvent) as GrowingEvent[]

  return {
    async grow(steps) {
      const { matchedCount } = await events.bulkWrite(
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
      if (matchedCount === steps.length) return steps.map(() => ({ status: 'fulfilled', value: true }))
      // The result does not say which messages have changed.
      const found = await events.find({ $or: steps.map(({ event }) => placeOf(event)) }).toArray()
      return steps.map(({ next }) => {
        const stored = found.find((each) => each.message?.messageId === next.message.messageId)
        const isWritten =
          stored?.message?.body === next.message.body &&
          stored.growth?.state === next.growth.state &&
          stored.growth.until?.getTime() === next.growth.until?.getTime()
        return { status: 'fulfilled', value: isWritten }
      })
    },

    async end(event, state, at, overdueAt) {
      const found = await events.findOneAndUpdate(
        {
          ...placeOf(event),
          'growth.state': 'growing',
          ...(overdueAt && { 'growth.until': { $lte: overdueAt } }),
        },
        { $set: { 'growth.state': state, 'growth.until': at } },
        { returnDocument: 'after' },
      )
      return found ? (toEvent(found) as GrowingEvent) : undefined
    },

    async recordEnd(event, end) {
      await events.updateOne(placeOf(event), { $set: { 'growth.end': end }, $unset: { 'growth.until': '' } })
    },

    growingIn: (conversationId) => find({ conversationId, 'growth.until': { $exists: true } }),

    async nextUntil() {
      const marked = events.find({ 'growth.until': { $exists: true } }, { hint: 'growing', projection: { growth: 1 } })
      return (await marked.sort({ 'growth.until': 1 }).limit(1).toArray())[0]?.growth?.until
    },

    overdue: (at, limit) => find({ 'growth.until': { $lte: at } }, limit),
  }
}
