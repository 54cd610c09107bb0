import type { Collection } from 'mongodb'
import { type Erasure, type ErasureStage, noTraces, type OpenErasure, type VisitorTraces } from './model.ts'

export type ErasureDocument = Omit<Erasure, 'erasureId'> &
  Partial<Pick<OpenErasure, 'visitor' | 'until' | 'traces' | 'fencingToken'>> & {
    _id: string
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
  /** Throws `LeaseLost` if another core owns the erasure. Writes nothing. */
  confirm(lease: Lease): Promise<void>
  advance(lease: Lease, to: ErasureStage, nextAt: Date): Promise<void>
  finish(lease: Lease, at: Date): Promise<void>
}

export class LeaseLost extends Error {
  override name = 'LeaseLost'
}

export function createErasureStore({ erasures }: { erasures: Collection<ErasureDocument> }): ErasureStore {
  const leaseFilter = ({ erasureId, fencingToken }: Lease) => ({
    _id: erasureId,
    fencingToken,
    stage: { $ne: 'finished' as const },
  })

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
      const found = await erasures.findOneAndUpdate(
        { nextAt: { $lte: now } },
        { $set: { nextAt: until }, $inc: { fencingToken: 1 } },
        { returnDocument: 'after' },
      )
      if (!found?.visitor || !found.until) return undefined
      const { visitor, until: cutOff, traces = noTraces(), fencingToken = 1 } = found
      return { ...toErasure(found), visitor, until: cutOff, traces, fencingToken }
    },

    async addTraces(lease, traces) {
      const added = Object.entries(traces).map(([kind, ids]) => [`traces.${kind}`, { $each: ids }])
      const found = await erasures.findOneAndUpdate(
        leaseFilter(lease),
        { $addToSet: Object.fromEntries(added) },
        { returnDocument: 'after' },
      )
      if (!found?.traces) throw new LeaseLost()
      return found.traces
    },

    async confirm(lease) {
      if (!(await erasures.findOne(leaseFilter(lease), { projection: { _id: 1 } }))) throw new LeaseLost()
    },

    async advance(lease, to, nextAt) {
      const { matchedCount } = await erasures.updateOne(leaseFilter(lease), { $set: { stage: to, nextAt } })
      if (matchedCount === 0) throw new LeaseLost()
    },

    async finish(lease, at) {
      const { matchedCount } = await erasures.updateOne(leaseFilter(lease), {
        $set: { stage: 'finished', finishedAt: at },
        $unset: { visitor: '', until: '', traces: '', nextAt: '', fencingToken: '' },
      })
      if (matchedCount === 0) throw new LeaseLost()
    },
  }
}

function toErasure({ _id, workspaceId, stage, requestedBy, requestedAt, finishedAt }: ErasureDocument): Erasure {
  return { erasureId: _id, workspaceId, stage, requestedBy, requestedAt, finishedAt }
}
