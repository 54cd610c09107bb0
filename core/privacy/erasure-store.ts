import type { Collection } from 'mongodb'
import { noTraces, type VisitorName, type VisitorTraces } from './visitor-traces-store.ts'

export type ErasureStage = 'ending' | 'removing' | 'removed' | 'finished'

/** The removal of one visitor. Once it is finished nothing in it names whom it was about. */
export interface Erasure {
  erasureId: string
  workspaceId: string
  stage: ErasureStage
  requestedBy: string
  requestedAt: Date
  finishedAt?: Date
}

/** An erasure that goes on, as the core that holds its lease knows it. */
export interface OpenErasure extends Erasure {
  visitor: VisitorName
  /** Sessions that begin after this are of a visitor who came back, whichever core's clock says so. */
  until: Date
  /** What is to be removed. From the beginning it names the visitor's browsers and subjects. */
  traces: VisitorTraces
  /** The number of the lease: a holder that lost it changes nothing any more. */
  fencingToken: number
}

export type ErasureDocument = Omit<Erasure, 'erasureId'> &
  Partial<Pick<OpenErasure, 'visitor' | 'until' | 'traces' | 'fencingToken'>> & {
    _id: string
    /** When its next step is due. */
    nextAt?: Date
  }

type Lease = Pick<OpenErasure, 'erasureId' | 'fencingToken'>

/** Errors of the writes under a lease: `LeaseLost` when another core has taken the erasure over. */
export interface ErasureStore {
  /** Inserts an erasure whose first step is leased until `nextAt`. */
  insert(erasure: Omit<OpenErasure, 'fencingToken'>, nextAt: Date): Promise<OpenErasure>
  find(erasureId: string): Promise<Erasure | undefined>
  /** Leases one whose step is due. */
  claim(now: Date, until: Date): Promise<OpenErasure | undefined>
  /** Notes what is to be removed before it is, so that a step that breaks off can be done again. */
  addTraces(lease: Lease, traces: VisitorTraces): Promise<VisitorTraces>
  /** Changes nothing. */
  confirm(lease: Lease): Promise<void>
  advance(lease: Lease, to: ErasureStage, nextAt: Date): Promise<void>
  finish(lease: Lease, at: Date): Promise<void>
}

export class LeaseLost extends Error {
  override name = 'LeaseLost'
}

export function createErasureStore({ erasures }: { erasures: Collection<ErasureDocument> }): ErasureStore {
  const held = ({ erasureId, fencingToken }: Lease) => ({
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
        held(lease),
        { $addToSet: Object.fromEntries(added) },
        { returnDocument: 'after' },
      )
      if (!found?.traces) throw new LeaseLost()
      return found.traces
    },

    async confirm(lease) {
      if (!(await erasures.findOne(held(lease), { projection: { _id: 1 } }))) throw new LeaseLost()
    },

    async advance(lease, to, nextAt) {
      const { matchedCount } = await erasures.updateOne(held(lease), { $set: { stage: to, nextAt } })
      if (matchedCount === 0) throw new LeaseLost()
    },

    async finish(lease, at) {
      const { matchedCount } = await erasures.updateOne(held(lease), {
        $set: { stage: 'finished', finishedAt: at },
        $unset: { visitor: '', until: '', traces: '', nextAt: '', fencingToken: '' },
      })
      if (matchedCount === 0) throw new LeaseLost()
    },
  }
}

function toErasure({ _id, workspaceId, stage, requestedBy, requestedAt, finishedAt }: ErasureDocument): Erasure {
  return { erasureId: _id, workspaceId, stage, requestedBy, requestedAt, ...(finishedAt && { finishedAt }) }
}
