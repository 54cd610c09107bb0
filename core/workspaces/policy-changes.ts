import { type Core, dateOf } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { readPage } from '../page-token.ts'
import type { PolicyChange } from './model.ts'

const defaultPage = 100
const maxPage = 1_000

/**
 * Runs a write and records it. The entry is stored before the write and confirmed after it, so every
 * change has one even if the process dies. A rejected write leaves none; a repeat of the operation adds
 * none.
 */
export async function recordPolicyChange<R>(
  core: Core,
  operation: string,
  change: Omit<PolicyChange, 'changeId' | 'at' | 'isConfirmed'>,
  write: () => Promise<R>,
): Promise<R> {
  const changeId = core.plannedIds('chg', operation)
  await insertOnce(core.db.policyChanges, { _id: changeId, ...change, at: dateOf(core), isConfirmed: false })
  let result: R
  try {
    result = await write()
  } catch (error) {
    // Any other error leaves the outcome unknown.
    if (error instanceof ServiceError) await core.db.policyChanges.deleteOne({ _id: changeId, isConfirmed: false })
    throw error
  }
  await core.db.policyChanges.updateOne({ _id: changeId }, { $set: { isConfirmed: true } })
  return result
}

/** Returns a page, newest first; with `target`, only its entries. Errors: `ValidationFailed`. */
export async function listPolicyChanges(
  core: Core,
  {
    workspaceId,
    target,
    limit = defaultPage,
    pageToken,
  }: { workspaceId: string; target?: string; limit?: number; pageToken?: string },
): Promise<{ changes: PolicyChange[]; nextPageToken?: string }> {
  const filter = { workspaceId, ...(target && { target }) }
  const list = `policy changes ${workspaceId}`
  const read = await readPage(core.db.policyChanges, filter, { list, by: 'at', max: maxPage, limit, pageToken })
  return {
    changes: read.page.map(({ _id: changeId, ...change }) => ({ changeId, ...change })),
    nextPageToken: read.nextPageToken,
  }
}

export type PolicyChangeDocument = Omit<PolicyChange, 'changeId'> & { _id: string }
