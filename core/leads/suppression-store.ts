import type { Collection } from 'mongodb'
import type { Suppression } from './model.ts'

export type SuppressionDocument = Omit<Suppression, 'suppressionId'> & {
  _id: string
  /** True until the waiting deliveries of this person have been ended. */
  unswept?: true
}

export interface SuppressionStore {
  /** Adds entries. Existing entries stay unchanged. Returns the number of new entries. */
  add(entries: Suppression[]): Promise<number>
  remove(workspaceId: string, suppressionIds: string[]): Promise<number>
  /** Returns entries, newest first. If `only` is set, returns only the entries with these ids. */
  list(
    workspaceId: string,
    limit: number,
    options: { before?: { addedAt: Date; id: string }; only?: string[] },
  ): Promise<Suppression[]>
  /** Returns those of the given ids that have an entry. */
  find(suppressionIds: string[]): Promise<string[]>
  /** Returns those of the given workspaces that have entries. */
  workspacesWithEntries(workspaceIds: string[]): Promise<string[]>
  /** Returns the ids of entries that are still `unswept`. */
  unswept(limit: number): Promise<string[]>
  markSwept(suppressionIds: string[]): Promise<void>
}

export function createSuppressionStore({
  suppressions,
}: {
  suppressions: Collection<SuppressionDocument>
}): SuppressionStore {
  return {
    async add(entries) {
      if (entries.length === 0) return 0
      const { upsertedCount } = await suppressions.bulkWrite(
        entries.map(({ suppressionId, ...rest }) => ({
          updateOne: {
            filter: { _id: suppressionId },
            update: { $setOnInsert: { ...rest, unswept: true as const } },
            upsert: true,
          },
        })),
        { ordered: false },
      )
      return upsertedCount
    },

    async remove(workspaceId, suppressionIds) {
      return (await suppressions.deleteMany({ _id: { $in: suppressionIds }, workspaceId })).deletedCount
    },

    async list(workspaceId, limit, { before, only }) {
      const found = suppressions
        .find({
          workspaceId,
          ...(only && { _id: { $in: only } }),
          ...(before && {
            $or: [{ addedAt: { $lt: before.addedAt } }, { addedAt: before.addedAt, _id: { $lt: before.id } }],
          }),
        })
        .sort({ addedAt: -1, _id: -1 })
        .limit(limit)
      return (await found.toArray()).map(({ _id, unswept: _, ...rest }) => ({ suppressionId: _id, ...rest }))
    },

    async find(suppressionIds) {
      const found = suppressions.find({ _id: { $in: suppressionIds } }, { projection: { _id: 1 } })
      return (await found.toArray()).map(({ _id }) => _id)
    },

    workspacesWithEntries: async (workspaceIds) => {
      const found = await Promise.all(
        workspaceIds.map((workspaceId) => suppressions.findOne({ workspaceId }, { projection: { workspaceId: 1 } })),
      )
      return found.flatMap((entry) => (entry ? [entry.workspaceId] : []))
    },

    async unswept(limit) {
      const found = suppressions.find({ unswept: true }, { projection: { _id: 1 } }).limit(limit)
      return (await found.toArray()).map(({ _id }) => _id)
    },

    async markSwept(suppressionIds) {
      await suppressions.updateMany({ _id: { $in: suppressionIds } }, { $unset: { unswept: '' } })
    },
  }
}
