import type { Collection } from 'mongodb'

/** Entry of a running core, by which other cores find that core. */
export interface PeerDocument {
  /** Id of the process. */
  _id: string
  /** URL at which other cores call it. Absent if `CORE_PEER_URL` is not set. */
  url?: string
  /** End of the lease. A process that dies does not renew it. */
  until: Date
  /** Whether the core confirms changes of state. Absent for cores of earlier versions. */
  confirms?: boolean
}

/** The register of running cores. */
export interface PeerStore {
  renew(processId: string, url: string | undefined, until: Date): Promise<void>
  /** Returns the cores with a lease at this time, except the given process. `url` is absent if it is not valid. */
  others(processId: string, at: Date): Promise<{ processId: string; url?: string; confirms: boolean }[]>
  remove(processId: string): Promise<void>
}

export function createPeerStore({ peers }: { peers: Collection<PeerDocument> }): PeerStore {
  // A lost write is harmless, because cores renew their entries and old entries expire. So the
  // writes need not survive a failover.
  const options = { writeConcern: { w: 1 } }
  return {
    async renew(processId, url, until) {
      await peers.updateOne({ _id: processId }, { $set: { url, until, confirms: true } }, { ...options, upsert: true })
    },

    async others(processId, at) {
      const found = await peers.find({ _id: { $ne: processId }, until: { $gt: at } }, { batchSize: 1000 }).toArray()
      return found.map(({ _id, url, confirms = false }) => ({
        processId: _id,
        url: url && URL.canParse(url) ? url : undefined,
        confirms,
      }))
    },

    async remove(processId) {
      await peers.deleteOne({ _id: processId }, options)
    },
  }
}
