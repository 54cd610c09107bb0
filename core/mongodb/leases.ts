import { randomInt } from 'node:crypto'
import type { Collection, Document, Filter, UpdateFilter, WithId } from 'mongodb'
import { insertOnce } from './insert-each.ts'
import { hasDocument } from './with-id.ts'

/**
 * The right of one process to work on a document for a time. Who takes the lease writes a new fencing token. The
 * holder's writes match the document only by the holder's token.
 */
export interface Lease {
  id: string
  token: number
}

export class LeaseLost extends Error {
  override name = 'LeaseLost'
  override message = 'another process has taken over the work'
}

export interface Leased<D> {
  lease: Lease
  document: WithId<D>
}

/** Tokens are random, because a counter would begin again with a new document of the same id. */
export const newToken = () => randomInt(2 ** 48 - 1)

/**
 * `until` names the end of the lease, or the time from which the next step is due. A document without it is only
 * free with `isFreeWithoutUntil`; by default, its work is finished.
 */
export function createLeases<D extends Document & { _id: string }>(
  collection: Collection<D>,
  fields: { until: string; token: string; isFreeWithoutUntil?: boolean },
) {
  const { until: untilField, token: tokenField, isFreeWithoutUntil = false } = fields
  /** Returns the filter that matches the document while its lease is held. */
  const held = ({ id, token }: Lease) => ({ _id: id, [tokenField]: token }) as Filter<D>

  return {
    held,

    /** Inserts a leased document. Returns undefined if its id is taken. */
    async insert(document: D, until: Date) {
      const token = newToken()
      const inserted = await insertOnce(collection, { ...document, [untilField]: until, [tokenField]: token })
      return inserted ? { id: document._id, token } : undefined
    },

    /** Leases a document whose lease has ended, and sets other fields with it. Returns undefined if none is free. */
    async take({ now, until }: { now: Date; until: Date }, of?: Filter<D>, set?: Partial<D>) {
      const token = newToken()
      const free = { [untilField]: isFreeWithoutUntil ? { $not: { $gt: now } } : { $lte: now }, ...of } as Filter<D>
      const taken = { $set: { ...set, [untilField]: until, [tokenField]: token } } as unknown as UpdateFilter<D>
      const document = await collection.findOneAndUpdate(free, taken, { returnDocument: 'after' })
      return document ? { lease: { id: String(document._id), token }, document } : undefined
    },

    /** Returns when the next lease ends or the next step is due; undefined if there is none. */
    async nextAt(of?: Filter<D>) {
      const [next] = await collection
        .aggregate<{ at: Date }>([
          { $match: { ...of, [untilField]: { $gt: new Date(0) } } },
          { $sort: { [untilField]: 1 } },
          { $limit: 1 },
          { $project: { at: `$${untilField}` } },
        ])
        .toArray()
      return next?.at
    },

    /** Changes the document and returns it. Errors: `LeaseLost`. */
    async write(lease: Lease, update: UpdateFilter<D>) {
      const found = await collection.findOneAndUpdate(held(lease), update, { returnDocument: 'after' })
      if (!found) throw new LeaseLost()
      return found
    },

    /** Checks the lease without a write. Errors: `LeaseLost`. */
    async confirm(lease: Lease) {
      if (!(await hasDocument(collection, held(lease)))) throw new LeaseLost()
    },

    async remove(lease: Lease) {
      await collection.deleteOne(held(lease))
    },
  }
}

export const msUntil = (at: Date | undefined, now: () => number) => at && Math.max(0, at.getTime() - now())

/** Waits for work. Ignores that its lease was lost, because the new holder continues the work. */
export async function whileHeld(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof LeaseLost)) throw error
  })
}
