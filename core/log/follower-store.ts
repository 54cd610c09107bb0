import { ObjectId } from 'mongodb'
import { perCore } from '../core.ts'
import type { LogEvent } from '../log-event.ts'
import { withTexts } from './event-store.ts'
import { toEvent } from './history-page-store.ts'

/** Position up to which a follower has read the logs. */
export interface FollowerDocument {
  /** Name of the follower. */
  _id: string
  after: ObjectId
}

/** A place in the order in which events were created. Undefined for the place before all events. */
export type FollowerPosition = string | undefined

export const followerStoreOf = perCore(({ db: { followers, events } }) => {
  return {
    async position(name: string): Promise<FollowerPosition> {
      return (await followers.findOne({ _id: name }))?.after.toHexString()
    },

    /** Moves a position. Returns false if another core has moved it. */
    async advance(name: string, from: FollowerPosition, to: string) {
      const after = new ObjectId(to)
      if (from !== undefined) {
        const filter = { _id: name, after: new ObjectId(from) }
        return (await followers.updateOne(filter, { $set: { after } })).modifiedCount === 1
      }
      const created = await followers.updateOne({ _id: name }, { $setOnInsert: { after } }, { upsert: true })
      return created.upsertedCount === 1
    },

    /**
     * Returns the events that were created after a position and before a time, oldest first. `since`
     * is the start if there is no position.
     */
    async eventsAfter(
      position: FollowerPosition,
      { since, before }: { since?: Date | undefined; before: Date },
      limit: number,
    ): Promise<{ events: LogEvent[]; end: FollowerPosition }> {
      const from = position === undefined ? since && idAt(since) : new ObjectId(position)
      const created = { ...(from && { $gt: from }), $lt: idAt(before) }
      const found = await events
        .find({ _id: created }, { projection: { operationKey: 0, inputHash: 0 } })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray()
      return { events: await withTexts(events, found.map(toEvent)), end: found.at(-1)?._id.toHexString() }
    },
  }
})

export type FollowerStore = ReturnType<typeof followerStoreOf>

const idAt = (time: Date) => ObjectId.createFromTime(Math.floor(time.getTime() / 1000))
