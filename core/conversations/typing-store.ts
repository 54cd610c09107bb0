import type { Collection } from 'mongodb'
import { insertOnce } from '../mongodb/insert-each.ts'
import type { TypingTurn } from './model.ts'

export type TypingDocument = Omit<TypingTurn, 'key'> & { _id: string }

export interface TypingStore {
  find(keys: string[]): Promise<TypingTurn[]>
  /** Starts a typing turn. Returns false if the author already has a turn. */
  insert(turn: TypingTurn): Promise<boolean>
  /** Renews a turn. Returns false if the turn has changed since it was read. */
  renew(turn: TypingTurn, times: { renewedAt: Date; endsAt: Date }): Promise<boolean>
  /**
   * Marks a turn as ending and returns it. Returns undefined if the turn has ended. With `asOf`,
   * also returns undefined if the turn has not expired at that time.
   */
  claimEnd(turn: TypingTurn, asOf?: Date): Promise<TypingTurn | undefined>
  remove(turn: TypingTurn): Promise<void>
  /** Returns turns that have expired. */
  overdue(asOf: Date, limit: number): Promise<TypingTurn[]>
  /** Returns when the next turn expires. */
  nextEnd(): Promise<Date | undefined>
}

export function createTypingStore({ typing }: { typing: Collection<TypingDocument> }): TypingStore {
  return {
    async find(keys) {
      return (await typing.find({ _id: { $in: keys } }).toArray()).map(toTurn)
    },

    insert: ({ key, ...rest }) => insertOnce(typing, { _id: key, ...rest }),

    async renew({ key, turnId, renewals }, times) {
      const { modifiedCount } = await typing.updateOne(
        { _id: key, turnId, renewals, ending: { $exists: false } },
        { $set: { ...times, renewals: renewals + 1 } },
      )
      return modifiedCount === 1
    },

    async claimEnd({ key, turnId }, asOf) {
      const found = await typing.findOneAndUpdate(
        { _id: key, turnId, $or: asOf && [{ ending: true }, { endsAt: { $lte: asOf } }] },
        { $set: { ending: true } },
        { returnDocument: 'after' },
      )
      return found ? toTurn(found) : undefined
    },

    async remove({ key, turnId }) {
      await typing.deleteOne({ _id: key, turnId })
    },

    async nextEnd() {
      return (
        await typing
          .find({}, { projection: { endsAt: 1 } })
          .sort({ endsAt: 1 })
          .limit(1)
          .toArray()
      )[0]?.endsAt
    },

    async overdue(asOf, limit) {
      const found = typing.find({ endsAt: { $lte: asOf } })
      return (await found.sort({ endsAt: 1 }).limit(limit).toArray()).map(toTurn)
    },
  }
}

function toTurn({ _id, ...rest }: TypingDocument): TypingTurn {
  return { key: _id, ...rest }
}
