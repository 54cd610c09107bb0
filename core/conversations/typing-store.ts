import type { Collection } from 'mongodb'
import { isDuplicateKey } from '../database/faults.ts'
import type { Author } from '../log/model.ts'

/** One turn of typing by one author in one conversation. */
export interface TypingTurn {
  /** Conversation and author: at most one turn at a time. */
  key: string
  turnId: string
  conversationId: string
  author: Author
  /** Number of renewals. */
  renewals: number
  renewedAt: Date
  endsAt: Date
  /** A process is ending it, so it cannot be renewed. */
  ending?: true
}

export type TypingDocument = Omit<TypingTurn, 'key'> & { _id: string }

export interface TypingStore {
  find(keys: string[]): Promise<TypingTurn[]>
  /** Starts a turn; returns false if there is one. */
  insert(turn: TypingTurn): Promise<boolean>
  /** Renews the turn if it is unchanged since it was read. */
  renew(turn: TypingTurn, times: { renewedAt: Date; endsAt: Date }): Promise<boolean>
  /**
   * Marks a turn as ending and returns it; undefined if it is over. With `asOf`, only if it has
   * expired.
   */
  claimEnd(turn: TypingTurn, asOf?: Date): Promise<TypingTurn | undefined>
  remove(turn: TypingTurn): Promise<void>
  /** Expired turns. */
  overdue(asOf: Date, limit: number): Promise<TypingTurn[]>
}

export function createTypingStore({ typing }: { typing: Collection<TypingDocument> }): TypingStore {
  return {
    async find(keys) {
      return (await typing.find({ _id: { $in: keys } }).toArray()).map(toTurn)
    },

    async insert({ key, ...rest }) {
      try {
        await typing.insertOne({ _id: key, ...rest })
        return true
      } catch (error) {
        if (isDuplicateKey(error)) return false
        throw error
      }
    },

    async renew({ key, turnId, renewals }, times) {
      const { modifiedCount } = await typing.updateOne(
        { _id: key, turnId, renewals, ending: { $exists: false } },
        { $set: { ...times, renewals: renewals + 1 } },
      )
      return modifiedCount === 1
    },

    async claimEnd({ key, turnId }, asOf) {
      const found = await typing.findOneAndUpdate(
        { _id: key, turnId, ...(asOf && { $or: [{ ending: true as const }, { endsAt: { $lte: asOf } }] }) },
        { $set: { ending: true } },
        { returnDocument: 'after' },
      )
      return found ? toTurn(found) : undefined
    },

    async remove({ key, turnId }) {
      await typing.deleteOne({ _id: key, turnId })
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
