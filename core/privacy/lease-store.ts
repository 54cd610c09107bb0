import type { Collection, Filter, MatchKeysAndValues, UpdateFilter, WithId } from 'mongodb'

/** A record of work in steps. The core that holds its lease runs the due step. */
export interface LeasedDocument {
  _id: string
  /** Time from which the next step is due. Absent when the work is finished. */
  nextAt?: Date
  /** Number of the lease. A core whose number is outdated can no longer write. */
  fencingToken?: number
}

export interface Lease {
  id: string
  fencingToken: number
}

export class LeaseLost extends Error {
  override name = 'LeaseLost'
}

/** Leases of the records in a collection. The collection needs an index on `nextAt`. */
export interface Leases<D extends LeasedDocument> {
  /** Leases a record whose next step is due; undefined if there is none. */
  claim(now: Date, until: Date): Promise<WithId<D> | undefined>
  /** Changes the record and returns it. Throws `LeaseLost` if another core holds the lease. */
  write(lease: Lease, update: UpdateFilter<D>): Promise<WithId<D>>
  /** Throws `LeaseLost` if another core holds the lease. Writes nothing. */
  confirm(lease: Lease): Promise<void>
  /** Removes the record. Changes nothing if another core holds the lease. */
  remove(lease: Lease): Promise<void>
}

export function createLeases<D extends LeasedDocument>(records: Collection<D>): Leases<D> {
  const held = ({ id, fencingToken }: Lease) => ({ _id: id, fencingToken }) as Filter<D>

  return {
    async claim(now, until) {
      const update = {
        $set: { nextAt: until } as MatchKeysAndValues<D>,
        $inc: { fencingToken: 1 },
      } as unknown as UpdateFilter<D>
      const due = { nextAt: { $lte: now } } as Filter<D>
      return (await records.findOneAndUpdate(due, update, { returnDocument: 'after' })) ?? undefined
    },

    async write(lease, update) {
      const found = await records.findOneAndUpdate(held(lease), update, { returnDocument: 'after' })
      if (!found) throw new LeaseLost()
      return found
    },

    async confirm(lease) {
      if (!(await records.findOne(held(lease), { projection: { _id: 1 } }))) throw new LeaseLost()
    },

    async remove(lease) {
      await records.deleteOne(held(lease))
    },
  }
}
