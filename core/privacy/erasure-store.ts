import type { Collection } from 'mongodb'
import { createLeases } from './lease-store.ts'
import { type Erasure, type ErasureStage, noTraces, type OpenErasure, type VisitorTraces } from './model.ts'

export type ErasureDocument = Omit<Erasure, 'erasureId'> &
  Partial<Pick<OpenErasure, 'visitor' | 'until' | 'traces' | 'isSwept' | 'fencingToken'>> & {
    _id: string
    /** Epochs of the removed logs. Kept, so that positions in these logs are recognised. */
    epochs?: string[]
    /** Time from which the next step is due. */
    nextAt?: Date
  }

type Lease = Pick<OpenErasure, 'erasureId' | 'fencingToken'>

/**
 * Stores erasures. Every write under a lease throws `LeaseLost` when another core owns the erasure.
 */
export interface ErasureStore {
  /** Inserts an erasure with its first step leased until `nextAt`. */
  insert(erasure: Omit<OpenErasure, 'fencingToken'>, nextAt: Date): Promise<OpenErasure>
  find(erasureId: string): Promise<Erasure | undefined>
  /** Leases an erasure whose next step is due; undefined if there is none. */
  claim(now: Date, until: Date): Promise<OpenErasure | undefined>
  /**
   * Records which data will be removed. This happens before the removal, so that an interrupted
   * step can be repeated.
   */
  addTraces(lease: Lease, traces: VisitorTraces): Promise<VisitorTraces>
  /** Records the epochs of the logs that will be removed. */
  addEpochs(lease: Lease, epochs: string[]): Promise<void>
  /** Throws `LeaseLost` if another core owns the erasure. Writes nothing. */
  confirm(lease: Lease): Promise<void>
  advance(lease: Lease, to: ErasureStage, nextAt: Date): Promise<void>
  /** Marks the erasure as swept, and keeps only those traces that `finish` needs. */
  setSwept(lease: Lease, traces: VisitorTraces, nextAt: Date): Promise<void>
  finish(lease: Lease, at: Date): Promise<void>
}

export function createErasureStore({ erasures }: { erasures: Collection<ErasureDocument> }): ErasureStore {
  const leases = createLeases(erasures)
  const leaseOf = ({ erasureId, fencingToken }: Lease) => ({ id: erasureId, fencingToken })

  return {
    async insert({ erasureId, ...rest }, nextAt) {
      await erasures.insertOne({ _id: erasureId, ...rest, fencingToken: 1, nextAt })
      return { erasureId, ...rest, fencingToken: 1 }
    },

    async find(erasureId) {
      const found = await erasures.findOne({ _id: erasureId }, { projection: { visitor: 0, traces: 0 } })
      return found ? toErasure(found) : undefined
    },

    async claim(now, until) {
      const found = await leases.claim(now, until)
      if (!found?.visitor || !found.until) return undefined
      const { visitor, until: cutOff, traces = noTraces(), isSwept, fencingToken = 1 } = found
      return { ...toErasure(found), visitor, until: cutOff, traces, ...(isSwept && { isSwept }), fencingToken }
    },

    async addTraces(lease, traces) {
      const added = Object.entries(traces).map(([kind, ids]) => [`traces.${kind}`, { $each: ids }])
      const found = await leases.write(leaseOf(lease), { $addToSet: Object.fromEntries(added) })
      return found.traces ?? noTraces()
    },

    async addEpochs(lease, epochs) {
      await leases.write(leaseOf(lease), { $addToSet: { epochs: { $each: epochs } } })
    },

    confirm: (lease) => leases.confirm(leaseOf(lease)),

    async advance(lease, to, nextAt) {
      await leases.write(leaseOf(lease), { $set: { stage: to, nextAt } })
    },

    async setSwept(lease, { visitorIds }, nextAt) {
      await leases.write(leaseOf(lease), { $set: { isSwept: true, traces: { ...noTraces(), visitorIds }, nextAt } })
    },

    async finish(lease, at) {
      await leases.write(leaseOf(lease), {
        $set: { stage: 'finished', finishedAt: at },
        $unset: { visitor: '', until: '', traces: '', isSwept: '', nextAt: '', fencingToken: '' },
      })
    },
  }
}

function toErasure({ _id, workspaceId, stage, requestedBy, requestedAt, finishedAt }: ErasureDocument): Erasure {
  return { erasureId: _id, workspaceId, stage, requestedBy, requestedAt, finishedAt }
}
