import type { Core } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { cutPage, readPageToken } from '../page-token.ts'
import { field, integer, validate } from '../rules.ts'
import type { PolicyChange } from './model.ts'

const defaultPage = 100
const maxPage = 1_000

/**
 * Runs a write and records it. The entry is stored before the write and confirmed after it. So
 * every change has an entry, even if the process dies. A rejected write leaves no entry. A repeat
 * of the operation adds no entry.
 */
export async function recordPolicyChange<R>(
  core: Core,
  operation: string,
  change: Omit<PolicyChange, 'changeId' | 'at' | 'isConfirmed'>,
  write: () => Promise<R>,
): Promise<R> {
  const changeId = core.plannedIds('chg', operation)
  await beginChange(core, { changeId, ...change, at: new Date(core.now()), isConfirmed: false })
  let result: Awaited<ReturnType<typeof write>>
  try {
    result = await write()
  } catch (error) {
    // After any other error, the outcome of the write is unknown.
    if (error instanceof ServiceError) await withdrawChange(core, changeId)
    throw error
  }
  await confirmChange(core, changeId)
  return result
}

/**
 * Returns a page, newest first. With `target`, returns only entries of this target. Errors:
 * `ValidationFailed`.
 */
export async function listPolicyChanges(
  core: Core,
  {
    workspaceId,
    limit = defaultPage,
    pageToken,
    target,
  }: {
    workspaceId: string
    limit?: number
    pageToken?: string
    target?: string
  },
): Promise<{ changes: PolicyChange[]; nextPageToken?: string }> {
  validate(field('/limit', limit, integer(1, maxPage)))
  const place = `policy changes ${workspaceId}`
  const before = readPageToken(place, pageToken)
  const found = await storedPolicyChanges(core, workspaceId, limit + 1, { before, target })
  const { page, nextPageToken } = cutPage(found, limit, place, ({ at, changeId }) => ({ at, id: changeId }))
  return { changes: page, nextPageToken }
}

export type PolicyChangeDocument = Omit<PolicyChange, 'changeId'> & { _id: string }

/** Adds an entry that is not confirmed. Changes nothing if the entry exists. */
export async function beginChange(core: Core, { changeId, ...change }: PolicyChange) {
  await core.db.policyChanges.updateOne({ _id: changeId }, { $setOnInsert: change }, { upsert: true })
}

export async function confirmChange(core: Core, changeId: string) {
  await core.db.policyChanges.updateOne({ _id: changeId }, { $set: { isConfirmed: true } })
}

/** Removes an entry that is not confirmed. */
export async function withdrawChange(core: Core, changeId: string) {
  await core.db.policyChanges.deleteOne({ _id: changeId, isConfirmed: false })
}

/** Returns entries of a workspace, newest first. If `target` is set, returns only its entries. */
export async function storedPolicyChanges(
  core: Core,
  workspaceId: string,
  limit: number,
  { before, target }: { before?: { at: Date; id: string }; target?: string },
): Promise<PolicyChange[]> {
  const found = core.db.policyChanges
    .find({
      workspaceId,
      ...(target !== undefined && { target }),
      ...(before && { $or: [{ at: { $lt: before.at } }, { at: before.at, _id: { $lt: before.id } }] }),
    })
    .sort({ at: -1, _id: -1 })
    .limit(limit)
  return (await found.toArray()).map(({ _id, ...change }) => ({ changeId: _id, ...change }))
}
