import type { Collection } from 'mongodb'
import { insertOnce } from '../mongodb/insert-each.ts'
import { createLeases, type LeasedDocument } from './lease-store.ts'
import type { Removal, RemovalStage } from './model.ts'

export type RemovalDocument = Omit<Removal, 'removalId' | 'fencingToken'> & LeasedDocument

type RemovalLease = Pick<Removal, 'removalId' | 'fencingToken'>

/** Stores removals. Every write under a lease throws `LeaseLost` when another core owns the removal. */
export interface RemovalStore {
  /**
   * Inserts a removal with its first step leased until `nextAt`. Returns undefined and changes
   * nothing if it exists.
   */
  insert(removal: Omit<Removal, 'fencingToken'>, nextAt: Date): Promise<Removal | undefined>
  /** Leases a removal whose next step is due; undefined if there is none. */
  claim(now: Date, until: Date): Promise<Removal | undefined>
  /** Begins the next stage at `nextAt`. `ids` replaces the list of what to remove. */
  advance(lease: RemovalLease, to: RemovalStage, nextAt: Date, ids?: string[]): Promise<void>
  /** Removes the record. */
  finish(lease: RemovalLease): Promise<void>
  /** Returns the number of removals of a workspace that have not removed their data yet. */
  countOpen(workspaceId: string, exceptId?: string): Promise<number>
}

export function createRemovalStore({ removals }: { removals: Collection<RemovalDocument> }): RemovalStore {
  const leases = createLeases(removals)
  const leaseOf = ({ removalId, fencingToken }: RemovalLease) => ({ id: removalId, fencingToken })

  return {
    async insert({ removalId, ...rest }, nextAt) {
      const inserted = await insertOnce(removals, { _id: removalId, ...rest, nextAt, fencingToken: 1 })
      return inserted ? { removalId, ...rest, fencingToken: 1 } : undefined
    },

    async claim(now, until) {
      const found = await leases.claim(now, until)
      if (!found) return undefined
      const { _id, nextAt: _, fencingToken = 1, ...rest } = found
      return { removalId: _id, ...rest, fencingToken }
    },

    async advance(lease, stage, nextAt, ids) {
      await leases.write(leaseOf(lease), { $set: { stage, nextAt, ...(ids && { ids }) } })
    },

    finish: (lease) => leases.remove(leaseOf(lease)),

    countOpen: (workspaceId, exceptId) =>
      removals.countDocuments({ workspaceId, stage: { $ne: 'removed' }, _id: exceptId && { $ne: exceptId } }),
  }
}
