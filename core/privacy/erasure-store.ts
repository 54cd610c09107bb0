import type { Collection } from 'mongodb'
import { noTraces, type VisitorName, type VisitorTraces } from './visitor-traces-store.ts'

export type ErasureStage = 'ending' | 'removing' | 'removed' | 'finished'

/** The erasure of one visitor. A finished one does not identify the visitor. */
export interface Erasure {
  erasureId: string
  workspaceId: string
  stage: ErasureStage
  requestedBy: string
  requestedAt: Date
  finishedAt?: Date
}

/** An erasure under way, as the owner of its lease reads it. */
export interface OpenErasure extends Erasure {
  visitor: VisitorName
  /**
   * Sessions that begin after this time belong to a visitor who returned, even with clock
   * differences.
   */
  until: Date
  /** Data to remove. It has the visitor's browsers and subjects from the beginning. */
  traces: VisitorTraces
  /** Number of the lease. An owner that lost it can no longer write. */
  fencingToken: number
}

export type ErasureDocument = Omit<Erasure, 'erasureId'> &
  Partial<Pick<OpenErasure, 'visitor' | 'until' | 'traces' | 'fencingToken'>> & {
    _id: string
    /** Time of the next step. */
    nextAt?: Date
  }

type Lease = Pick<OpenErasure, 'erasureId' | 'fencingToken'>

/** Error of the writes under a lease: `LeaseLost` when another core owns the erasure. */
export interface ErasureStore {
  /** Inserts an erasure with its first step leased until `nextAt`. */
  insert(erasure: Omit<OpenErasure, 'fencingToken'>, nextAt: Date): Promise<OpenErasure>
  find(erasureId: string): Promise<Erasure | undefined>
  /** Leases an erasure with a due step. */
  claim(now: Date, until: Date): Promise<OpenErasure | undefined>
  /** Stores the data to remove before its removal, so that an interrupted step can be repeated. */
  addTraces(lease: Lease, traces: VisitorTraces): Promise<VisitorTraces>
  /** Checks the lease without a write. */
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
