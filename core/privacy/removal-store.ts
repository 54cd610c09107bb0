import type { Collection, UpdateFilter } from 'mongodb'
import { type Core, dateOf } from '../core.ts'
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

/** A removal as the core that holds its lease reads it. */
export interface Removal {
  lease: Lease
  workspaceId: string
  kind: RemovalKind
  /** The conversations belong to an object that is being deleted. */
  isDeletion?: true
  /** Ids of the conversations or leads, the deleted object, or the erasure. */
  ids: string[]
  stage: RemovalStage
  visitor?: ErasedVisitor
}

interface LeasedDocument {
  _id: string
  workspaceId: string
  /** The next step is due at this time. Absent when the work is finished. */
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
    /** Epochs of the removed logs, so that positions in them are recognised. */
    epochs?: string[]
  }

type Held = Pick<Removal, 'lease' | 'kind'>

type AnyDocument = LeasedDocument & { stage: string; ids?: string[]; traces?: VisitorTraces; epochs?: string[] }

// Removals of visitors are in `erasures`, because operators see them after their end. Every write throws
// `LeaseLost` when another core owns the removal.

const fields = { until: 'nextAt', token: 'fencingToken' }
const removalLeases = ({ db }: Core) => createLeases(db.removals, fields)
const erasureLeases = ({ db }: Core) => createLeases(db.erasures, fields)
const leasesOf = ({ db }: Core, { kind }: Held) =>
  createLeases((kind === 'visitor' ? db.erasures : db.removals) as unknown as Collection<AnyDocument>, fields)
const write = (core: Core, removal: Held, update: UpdateFilter<AnyDocument>) =>
  leasesOf(core, removal).write(removal.lease, update)

/** Inserts a removal with its first step leased. Returns undefined if it exists. */
export async function insertRemoval(
  core: Core,
  { removalId, ...rest }: Omit<Removal, 'lease' | 'visitor'> & { removalId: string },
  nextAt: Date,
): Promise<Removal | undefined> {
  const lease = await removalLeases(core).insert({ _id: removalId, ...rest }, nextAt)
  return lease && { lease, ...rest }
}

export async function insertErasure(
  core: Core,
  { erasureId, ...erasure }: Erasure,
  { name, until, traces }: Omit<ErasedVisitor, 'isSwept'>,
  nextAt: Date,
): Promise<Removal | undefined> {
  const document = { _id: erasureId, ...erasure, visitor: name, until, traces }
  const lease = await erasureLeases(core).insert(document, nextAt)
  return lease && toVisitorRemoval(lease, document)
}

/** Leases an erasure, or else another removal, whose next step is due. */
export async function claimRemoval(core: Core, until: Date): Promise<Removal | undefined> {
  const times = { now: dateOf(core), until }
  const erasure = await erasureLeases(core).take(times)
  if (erasure) return toVisitorRemoval(erasure.lease, erasure.document)
  const found = await removalLeases(core).take(times)
  return found && toRemoval(found.document, found.lease)
}

export async function nextRemovalAt(core: Core): Promise<Date | undefined> {
  const [erasure, removal] = await Promise.all([erasureLeases(core).nextAt(), removalLeases(core).nextAt()])
  return erasure && removal ? new Date(Math.min(+erasure, +removal)) : (erasure ?? removal)
}

/** Leases a removal in one of these stages, and begins another stage. */
export async function turnRemoval(
  { db }: Core,
  removalId: string,
  from: RemovalStage[],
  stage: RemovalStage,
  until: Date,
): Promise<Removal | undefined> {
  const token = newToken()
  const found = await db.removals.findOneAndUpdate(
    { _id: removalId, stage: { $in: from } },
    { $set: { stage, nextAt: until, fencingToken: token } },
    { returnDocument: 'after' },
  )
  return found ? toRemoval(found, { id: found._id, token }) : undefined
}

/** Begins a stage at `nextAt`. `ids` replaces the list of what to remove. */
export async function advanceRemoval(core: Core, removal: Held, stage: RemovalStage, nextAt: Date, ids?: string[]) {
  await write(core, removal, { $set: { stage, nextAt, ...(ids && { ids }) } })
}

/**
 * Records what will be removed of a visitor, and the epochs of its logs, so that an interrupted step can be
 * repeated. Returns all recorded ids.
 */
export async function addTraces(
  core: Core,
  removal: Held,
  traces: VisitorTraces,
  epochs: string[] = [],
): Promise<VisitorTraces> {
  const added = Object.entries(traces).map(([kind, ids]) => [`traces.${kind}`, { $each: ids }])
  const found = await write(core, removal, {
    $addToSet: { ...Object.fromEntries(added), ...(epochs.length > 0 && { epochs: { $each: epochs } }) },
  })
  return { ...noTraces(), ...found.traces }
}

/** Keeps only the ids that the end of an erasure needs. */
export async function setSwept(core: Core, { lease }: Held, nextAt: Date) {
  const { visitorIds: _, ...unneeded } = noTraces()
  const emptied = Object.entries(unneeded).map(([kind, none]) => [`traces.${kind}`, none])
  await erasureLeases(core).write(lease, { $set: { isSwept: true, nextAt, ...Object.fromEntries(emptied) } })
}

/** Throws `LeaseLost` if another core owns the removal. */
export const confirmRemoval = (core: Core, removal: Held) => leasesOf(core, removal).confirm(removal.lease)

/** The record of an erasure stays, without what identifies the visitor. */
export async function finishRemoval(core: Core, removal: Held) {
  if (removal.kind !== 'visitor') return removalLeases(core).remove(removal.lease)
  await erasureLeases(core).write(removal.lease, {
    $set: { stage: 'finished', finishedAt: dateOf(core) },
    $unset: { visitor: '', until: '', traces: '', isSwept: '', nextAt: '', fencingToken: '' },
  })
}

/** Counts the removals that have not removed their data yet. */
export const countOpenRemovals = ({ db }: Core, workspaceId: string, exceptId?: string): Promise<number> =>
  db.removals.countDocuments({ workspaceId, stage: { $ne: 'removed' }, _id: exceptId && { $ne: exceptId } })

const toRemoval = (
  { _id: _, nextAt: __, fencingToken: ___, ...rest }: RemovalDocument,
  lease: Removal['lease'],
): Removal => ({ lease, ...rest })

function toVisitorRemoval(lease: Removal['lease'], document: ErasureDocument): Removal | undefined {
  const { _id, workspaceId, stage, visitor: name, until, traces, isSwept = false } = document
  if (stage === 'finished' || !name || !until) return undefined
  const visitor = { name, until, traces: { ...noTraces(), ...traces }, isSwept }
  return { lease, workspaceId, kind: 'visitor', ids: [_id], stage, visitor }
}
