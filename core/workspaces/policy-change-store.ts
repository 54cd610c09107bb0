import type { Collection } from 'mongodb'
import type { PolicyChange } from './model.ts'

export type PolicyChangeDocument = Omit<PolicyChange, 'changeId'> & { _id: string }

export interface PolicyChangeStore {
  /** Adds an entry that is not confirmed. Changes nothing if the entry exists. */
  begin(change: PolicyChange): Promise<void>
  confirm(changeId: string): Promise<void>
  /** Removes an entry that is not confirmed. */
  withdraw(changeId: string): Promise<void>
  /** Returns entries of a workspace, newest first. If `target` is set, returns only its entries. */
  list(
    workspaceId: string,
    limit: number,
    options: { before?: { at: Date; id: string }; target?: string },
  ): Promise<PolicyChange[]>
}

export function createPolicyChangeStore({
  policyChanges,
}: {
  policyChanges: Collection<PolicyChangeDocument>
}): PolicyChangeStore {
  return {
    async begin({ changeId, ...change }) {
      await policyChanges.updateOne({ _id: changeId }, { $setOnInsert: change }, { upsert: true })
    },

    async confirm(changeId) {
      await policyChanges.updateOne({ _id: changeId }, { $set: { isConfirmed: true } })
    },

    async withdraw(changeId) {
      await policyChanges.deleteOne({ _id: changeId, isConfirmed: false })
    },

    async list(workspaceId, limit, { before, target }) {
      const found = policyChanges
        .find({
          workspaceId,
          ...(target !== undefined && { target }),
          ...(before && { $or: [{ at: { $lt: before.at } }, { at: before.at, _id: { $lt: before.id } }] }),
        })
        .sort({ at: -1, _id: -1 })
        .limit(limit)
      return (await found.toArray()).map(({ _id, ...change }) => ({ changeId: _id, ...change }))
    },
  }
}
