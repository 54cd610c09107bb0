import type { Collection } from 'mongodb'

/** The workspaces whose inbox is watched on one core. */
export interface OperatorPresenceDocument {
  /** Id of the process. */
  _id: string
  workspaces: string[]
  /** End of the lease. A process that dies does not renew it. */
  until: Date
}

export interface OperatorPresenceStore {
  renew(processId: string, workspaces: string[], until: Date): Promise<void>
  /** Returns the workspaces that are watched on any core at this time. */
  watched(at: Date): Promise<string[]>
}

export function createOperatorPresenceStore({
  operatorPresence,
}: {
  operatorPresence: Collection<OperatorPresenceDocument>
}): OperatorPresenceStore {
  return {
    async renew(processId, workspaces, until) {
      await operatorPresence.updateOne({ _id: processId }, { $set: { workspaces, until } }, { upsert: true })
    },

    async watched(at) {
      const found = await operatorPresence.find({ until: { $gt: at } }).toArray()
      return found.flatMap(({ workspaces }) => workspaces)
    },
  }
}
