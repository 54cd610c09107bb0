import type { Collection } from 'mongodb'
import { noTraces, type VisitorName, type VisitorTraces } from './visitor-traces.ts'

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

/** An erasure that goes on. */
export interface OpenErasure extends Erasure {
  visitor: VisitorName
  /** Sessions that begin after this are of a visitor who came back. */
  until: Date
  traces: VisitorTraces
}

export type ErasureDocument = Omit<Erasure, 'erasureId'> &
  Partial<Pick<OpenErasure, 'visitor' | 'until' | 'traces'>> & {
    _id: string
    /** When its next step is due. */
    nextAt?: Date
  }

export interface ErasureStore {
  insert(erasure: Erasure & { visitor: VisitorName; until: Date }, nextAt: Date): Promise<void>
  find(erasureId: string): Promise<Erasure | undefined>
  /** One whose step is due, and nobody else's until then. */
  claim(now: Date, until: Date): Promise<OpenErasure | undefined>
  /** Notes what is to be removed before it is, so that a step that breaks off can be done again. */
  addTraces(erasureId: string, traces: VisitorTraces): Promise<VisitorTraces>
  advance(erasureId: string, to: ErasureStage, nextAt: Date): Promise<void>
  finish(erasureId: string, at: Date): Promise<void>
}

export function createErasureStore({ erasures }: { erasures: Collection<ErasureDocument> }): ErasureStore {
  return {
    async insert({ erasureId, ...rest }, nextAt) {
      await erasures.insertOne({ _id: erasureId, ...rest, nextAt })
    },

    async find(erasureId) {
      const found = await erasures.findOne({ _id: erasureId }, { projection: { visitor: 0, traces: 0 } })
      return found ? toErasure(found) : undefined
    },

    async claim(now, until) {
      const found = await erasures.findOneAndUpdate({ nextAt: { $lte: now } }, { $set: { nextAt: until } })
      if (!found?.visitor || !found.until) return undefined
      return { ...toErasure(found), visitor: found.visitor, until: found.until, traces: found.traces ?? noTraces() }
    },

    async addTraces(erasureId, traces) {
      const added = Object.entries(traces).map(([kind, ids]) => [`traces.${kind}`, { $each: ids }])
      const found = await erasures.findOneAndUpdate(
        { _id: erasureId },
        { $addToSet: Object.fromEntries(added) },
        { returnDocument: 'after' },
      )
      return found?.traces ?? noTraces()
    },

    async advance(erasureId, to, nextAt) {
      await erasures.updateOne({ _id: erasureId, stage: { $ne: 'finished' } }, { $set: { stage: to, nextAt } })
    },

    async finish(erasureId, at) {
      await erasures.updateOne(
        { _id: erasureId },
        {
          $set: { stage: 'finished', finishedAt: at },
          $unset: { visitor: '', until: '', traces: '', nextAt: '' },
        },
      )
    },
  }
}

function toErasure({ _id, workspaceId, stage, requestedBy, requestedAt, finishedAt }: ErasureDocument): Erasure {
  return { erasureId: _id, workspaceId, stage, requestedBy, requestedAt, ...(finishedAt && { finishedAt }) }
}
