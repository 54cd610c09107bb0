import { type Core, dateOf } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { type PageRequest, readPage } from '../page-token.ts'
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
  change: Omit<PolicyChange, '_id' | 'at' | 'isConfirmed'>,
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
export function listPolicyChanges(
  { db }: Core,
  { workspaceId, target, limit = defaultPage, pageToken }: PageRequest & { workspaceId: string; target?: string },
) {
  const filter = { workspaceId, ...(target && { target }) }
  const list = `policy changes ${workspaceId}`
  return readPage(db.policyChanges, filter, { list, by: 'at', max: maxPage, limit, pageToken })
}
