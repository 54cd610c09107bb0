import { ServiceError } from '../errors.ts'
import type { PlannedIds } from '../keys/keyring.ts'
import { cutPage, readPageToken } from '../page-token.ts'
import { field, integer, validate } from '../rules.ts'
import type { PolicyChange } from './model.ts'
import type { PolicyChangeStore } from './policy-change-store.ts'

/** Records who changed which policy of a workspace, and when. */
export interface PolicyChanges {
  /**
   * Runs a write and records it. The entry is stored before the write and confirmed after it. So
   * every change has an entry, even if the process dies. A rejected write leaves no entry. A repeat
   * of the operation adds no entry.
   */
  record<R>(
    operation: string,
    change: Omit<PolicyChange, 'changeId' | 'at' | 'isConfirmed'>,
    write: () => Promise<R>,
  ): Promise<R>
  /**
   * Returns a page, newest first. With `target`, returns only entries of this target. Errors:
   * `ValidationFailed`.
   */
  list(query: {
    workspaceId: string
    limit?: number
    pageToken?: string
    target?: string
  }): Promise<{ changes: PolicyChange[]; nextPageToken?: string }>
}

const defaultPage = 100
const maxPage = 1_000

export function createPolicyChanges(dependencies: {
  store: PolicyChangeStore
  plannedIds: PlannedIds
  now: () => number
}): PolicyChanges {
  const { store, plannedIds, now } = dependencies

  return {
    async record(operation, change, write) {
      const changeId = plannedIds('chg', operation)
      await store.begin({ changeId, ...change, at: new Date(now()), isConfirmed: false })
      let result: Awaited<ReturnType<typeof write>>
      try {
        result = await write()
      } catch (error) {
        // After any other error, the outcome of the write is unknown.
        if (error instanceof ServiceError) await store.withdraw(changeId)
        throw error
      }
      await store.confirm(changeId)
      return result
    },

    async list({ workspaceId, limit = defaultPage, pageToken, target }) {
      validate(field('/limit', limit, integer(1, maxPage)))
      const place = `policy changes ${workspaceId}`
      const before = readPageToken(place, pageToken)
      const found = await store.list(workspaceId, limit + 1, { before, target })
      const { page, nextPageToken } = cutPage(found, limit, place, ({ at, changeId }) => ({ at, id: changeId }))
      return { changes: page, nextPageToken }
    },
  }
}
