import type { Core } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { readPage } from '../page-token.ts'
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

/** Adds an entry that is not confirmed. Changes nothing if the entry exists. */
async function beginChange(core: Core, { changeId, ...change }: PolicyChange) {
  await core.db.policyChanges.updateOne({ _id: changeId }, { $setOnInsert: change }, { upsert: true })
}

async function confirmChange(core: Core, changeId: string) {
  await core.db.policyChanges.updateOne({ _id: changeId }, { $set: { isConfirmed: true } })
}

/** Removes an entry that is not confirmed. */
async function withdrawChange(core: Core, changeId: string) {
  await core.db.policyChanges.deleteOne({ _id: changeId, isConfirmed: false })
}
