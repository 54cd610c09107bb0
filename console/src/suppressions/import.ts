import { ConnectError } from '@connectrpc/connect'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import type { ListEntry } from '../../../contract/suppression-list.ts'
import type { Api } from '../api.ts'
import { toEntry } from './suppression-words.ts'

/** Maximum number of entries per call. */
const perCall = 1_000

/** Progress of an import. */
interface ImportState {
  /** Number of processed entries: added, existing and rejected ones. */
  done: number
  added: number
  /** Number of entries that were on the list before. */
  existing: number
  /** Entries that the service rejected. */
  rejected: ListEntry[]
}

export const importStart: ImportState = { done: 0, added: 0, existing: 0, rejected: [] }

/**
 * Adds the entries from index `state.done` on, in calls of at most 1,000. Reports the state after
 * each call. If the service rejects entries of a call, repeats the call without them. After an
 * error, the caller can continue with the last reported state. If the failed call was executed, its
 * entries then count as existing.
 */
export async function importEntries(
  { workspaces }: Pick<Api, 'workspaces'>,
  entries: ListEntry[],
  reason: string,
  state: ImportState,
  report: (state: ImportState) => void,
): Promise<void> {
  for (let current = state; current.done < entries.length; ) {
    const part = entries.slice(current.done, current.done + perCall)
    const { added, existing, rejected } = await addPart(workspaces, part, reason)
    current = {
      done: current.done + part.length,
      added: current.added + added,
      existing: current.existing + existing,
      rejected: [...current.rejected, ...rejected],
    }
    report(current)
  }
}

async function addPart(workspaces: Api['workspaces'], part: ListEntry[], reason: string) {
  const add = async (entries: ListEntry[]) =>
    entries.length === 0
      ? { added: 0, existing: 0 }
      : workspaces.addSuppressions({ entries: entries.map(({ kind, value }) => toEntry(kind, value)), reason })
  try {
    return { ...(await add(part)), rejected: [] }
  } catch (error) {
    const rejected = rejectedIn(error, part)
    if (rejected.length === 0) throw error
    return { ...(await add(part.filter((entry) => !rejected.includes(entry)))), rejected }
  }
}

/** Returns the entries that a `ValidationFailed` names. */
function rejectedIn(error: unknown, part: ListEntry[]): ListEntry[] {
  const issues = ConnectError.from(error).findDetails(ErrorInfoSchema)[0]?.issues ?? []
  return issues.flatMap(({ path }) => {
    const [, index] = /^\/entries\/(\d+)/.exec(path) ?? []
    return (index !== undefined && part[Number(index)]) || []
  })
}
