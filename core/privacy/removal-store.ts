import type { Collection, UpdateFilter } from 'mongodb'
import { createLeases, type Lease, newToken } from '../mongodb/leases.ts'
import {
  type ErasedVisitor,
  type Erasure,
  noTraces,
  type RemovalKind,
  type RemovalStage,
  type VisitorName,
  type VisitorTraces,
} from './model.ts'

/** A removal in progress, as the core that holds its lease reads it. */
export interface Removal {
  lease: Lease
  workspaceId: string
  kind: RemovalKind
  /** True if the conversations belong to an object that is being deleted. */
  isDeletion?: true
  /** Ids of the conversations or leads, id of the deleted object, or id of the erasure. */
  ids: string[]
  stage: RemovalStage
  /** Set for the removal of a visitor. */
  visitor?: ErasedVisitor
}

interface LeasedDocument {
  _id: string
  workspaceId: string
  /** Time from which the next step is due. Absent when the work is finished. */
  nextAt?: Date
  fencingToken?: number
}

export type RemovalDocument = LeasedDocument & Omit<Removal, 'lease' | 'visitor'>

export type ErasureDocument = LeasedDocument &
  Omit<Erasure, 'erasureId'> & {
    visitor?: VisitorName
    until?: Date
    traces?: VisitorTraces
    isSwept?: true
    /** Epochs of the removed logs. Kept, so that positions in these logs are recognised. */
    epochs?: string[]
  }

type Held = Pick<Removal, 'lease' | 'kind'>

/** Fields of both collections of removals. */
type AnyDocument = LeasedDocument & { stage: string; ids?: string[]; traces?: VisitorTraces; epochs?: string[] }

export type RemovalStore = ReturnType<typeof createRemovalStore>

/**
 * Stores removals. Removals of visitors are in `erasures`, because operators can still see them
 * after they have finished. Every write under a lease throws `LeaseLost` when another core owns the
 * removal.
 */
export function createRemovalStore({
  removals,
  erasures,
}: {
  removals: Collection<RemovalDocument>
  erasures: Collection<ErasureDocument>
}) {
  const fields = { until: 'nextAt', token: 'fencingToken' }
  const removalLeases = createLeases(removals, fields)
  const erasureLeases = createLeases(erasures, fields)
  const leasesOf = ({ kind }: Held) =>
    createLeases((kind === 'visitor' ? erasures : removals) as unknown as Collection<AnyDocument>, fields)
  const write = (removal: Held, update: UpdateFilter<AnyDocument>) => leasesOf(removal).write(removal.lease, update)

  return {
    /**
     * Inserts a removal with its first step leased until `nextAt`. Returns undefined and changes
     * nothing if it exists.
     */
    async insert(
      { removalId, ...rest }: Omit<Removal, 'lease' | 'visitor'> & { removalId: string },
      nextAt: Date,
    ): Promise<Removal | undefined> {
      const lease = await removalLeases.insert({ _id: removalId, ...rest }, nextAt)
      return lease && { lease, ...rest }
    },

    /** Inserts an erasure with its first step leased until `nextAt`. */
    async insertErasure(
      { erasureId, ...erasure }: Erasure,
      { name, until, traces }: Omit<ErasedVisitor, 'isSwept'>,
      nextAt: Date,
    ): Promise<Removal | undefined> {
      const document = { _id: erasureId, ...erasure, visitor: name, until, traces }
      const lease = await erasureLeases.insert(document, nextAt)
      return lease && toVisitorRemoval(lease, document)
    },

    /** Leases an erasure, or else another removal, whose next step is due; undefined if there is none. */
    async claim(now: Date, until: Date): Promise<Removal | undefined> {
      const erasure = await erasureLeases.take({ now, until })
      if (erasure) return toVisitorRemoval(erasure.lease, erasure.document)
      const found = await removalLeases.take({ now, until })
      if (!found) return undefined
      const { _id, nextAt: _, fencingToken: __, ...rest } = found.document
      return { lease: found.lease, ...rest }
    },

    /** Returns when the next step of any removal is due. */
    async nextAt(): Promise<Date | undefined> {
      const [erasure, removal] = await Promise.all([erasureLeases.nextAt(), removalLeases.nextAt()])
      return erasure && removal ? new Date(Math.min(+erasure, +removal)) : (erasure ?? removal)
    },

    async findErasure(erasureId: string): Promise<Erasure | undefined> {
      const found = await erasures.findOne({ _id: erasureId }, { projection: { visitor: 0, traces: 0 } })
      if (!found) return undefined
      const { _id, workspaceId, stage, requestedBy, requestedAt, finishedAt } = found
      return { erasureId: _id, workspaceId, stage, requestedBy, requestedAt, finishedAt }
    },

    /** Leases a removal that is in one of these stages, and begins another stage; undefined if it is in none. */
    async turn(
      removalId: string,
      from: RemovalStage[],
      stage: RemovalStage,
      until: Date,
    ): Promise<Removal | undefined> {
      const token = newToken()
      const found = await removals.findOneAndUpdate(
        { _id: removalId, stage: { $in: from } },
        { $set: { stage, nextAt: until, fencingToken: token } },
        { returnDocument: 'after' },
      )
      if (!found) return undefined
      const { _id: id, nextAt: _, fencingToken: __, ...rest } = found
      return { lease: { id, token }, ...rest }
    },

    /** Begins a stage, or the next part of one, at `nextAt`. `ids` replaces the list of what to remove. */
    async advance(removal: Held, stage: RemovalStage, nextAt: Date, ids?: string[]): Promise<void> {
      await write(removal, { $set: { stage, nextAt, ...(ids && { ids }) } })
    },

    /**
     * Records which data of a visitor will be removed, and the epochs of its logs. This happens before
     * the removal, so that an interrupted step can be repeated. Returns all recorded ids.
     */
    async addTraces(removal: Held, traces: VisitorTraces, epochs: string[] = []): Promise<VisitorTraces> {
      const added = Object.entries(traces).map(([kind, ids]) => [`traces.${kind}`, { $each: ids }])
      const found = await write(removal, {
        $addToSet: { ...Object.fromEntries(added), ...(epochs.length > 0 && { epochs: { $each: epochs } }) },
      })
      return { ...noTraces(), ...found.traces }
    },

    /** Marks an erasure as swept, and keeps only those ids that its end needs. */
    async setSwept({ lease }: Held, nextAt: Date): Promise<void> {
      const { visitorIds: _, ...unneeded } = noTraces()
      const emptied = Object.entries(unneeded).map(([kind, none]) => [`traces.${kind}`, none])
      await erasureLeases.write(lease, {
        $set: { isSwept: true, nextAt, ...Object.fromEntries(emptied) },
      })
    },

    /** Throws `LeaseLost` if another core owns the removal. Writes nothing. */
    confirm: (removal: Held) => leasesOf(removal).confirm(removal.lease),

    /**
     * Removes the record. The record of an erasure stays, but loses the fields that identify the
     * visitor.
     */
    async finish(removal: Held, at: Date): Promise<void> {
      if (removal.kind !== 'visitor') return removalLeases.remove(removal.lease)
      await erasureLeases.write(removal.lease, {
        $set: { stage: 'finished', finishedAt: at },
        $unset: { visitor: '', until: '', traces: '', isSwept: '', nextAt: '', fencingToken: '' },
      })
    },

    /** Returns the number of removals of a workspace that have not removed their data yet. */
    countOpen: (workspaceId: string, exceptId?: string): Promise<number> =>
      removals.countDocuments({ workspaceId, stage: { $ne: 'removed' }, _id: exceptId && { $ne: exceptId } }),
  }
}

function toVisitorRemoval(lease: Removal['lease'], document: ErasureDocument): Removal | undefined {
  const { _id, workspaceId, stage, visitor: name, until, traces, isSwept = false } = document
  if (stage === 'finished' || !name || !until) return undefined
  const visitor = { name, until, traces: { ...noTraces(), ...traces }, isSwept }
  return { lease, workspaceId, kind: 'visitor', ids: [_id], stage, visitor }
}
