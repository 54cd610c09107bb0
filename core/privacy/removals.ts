import type { Collection, UpdateFilter } from 'mongodb'
import { createPace } from '../concurrency/pace.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { newId } from '../ids.ts'
import { createLeases, type Lease, msUntil, newToken, whileHeld } from '../mongodb/leases.ts'
import { sweepWakeups } from '../wakeups/wakeups.ts'
import type { Part } from './data-store.ts'
import {
  type ErasedVisitor,
  type Erasure,
  leaseMs,
  maxCallMs,
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

/** How a visitor, old data or an object is removed. */
export interface RemovalList {
  /** Hides the data, so that later calls do not find it. */
  hide(core: Core, removal: Removal): Promise<void>
  /** No earlier call uses the hidden data after this time. */
  hiddenMs: number
  /** Then reads the data again. Returns the ids to remove, or undefined to be called again. */
  check?(core: Core, removal: Removal): Promise<string[] | undefined>
  /** Returns what to remove now, or the pause before the next try. */
  next(core: Core, removal: Removal): Promise<NextParts | { waitMs: number }>
  /** Called when everything has been removed for the first time. */
  removed?(core: Core, removal: Removal): Promise<void>
  /** Whether data that calls wrote late is removed a minute later. */
  removesLate: boolean
  /** Shows hidden data again, of which nothing was removed. */
  restore?(core: Core, removal: Removal): Promise<void>
  /** Removes the id of the removal from documents that still have it. */
  forget?(core: Core, removal: Removal): Promise<void>
}

interface NextParts<Item = string> {
  /** Ids of what to remove, or sessions. */
  items: Item[]
  /** Returns what to remove for some of the items. */
  partsOf(items: Item[]): Part[]
}

const groupSize = 20
const chunk = 100
/** A step ends after this time, well within its lease. */
const stepMs = 5_000
/** Every core reads the next wake-up before the newest is removed. */
const wakeupPauseMs = 2_000

/** `jobs.ts` sets the lists, because one may begin removals of another kind. */
export const removalListsOf = perCore((): Record<RemovalKind, RemovalList> => {
  throw new Error('the lists of removals are not set')
})

const paceOf = perCore(() => createPace({ share: 1 / 7, maxPauseMs: 500 }))

/**
 * Removes the parts, with pauses that spare the calls for messages. Returns what is left after `stepMs`.
 */
export async function removeParts<Item>(core: Core, { items, partsOf }: NextParts<Item>): Promise<Item[]> {
  const endsAt = performance.now() + stepMs
  for (let start = 0; start < items.length; start += groupSize) {
    if (start > 0 && performance.now() > endsAt) return items.slice(start)
    for (const part of partsOf(items.slice(start, start + groupSize)))
      if (!(await removePart(core, part, endsAt))) return items.slice(start)
  }
  return []
}

async function removePart(core: Core, { kind, remove }: Part, endsAt: number) {
  for (;;) {
    const removed = await paceOf(core)(() => remove(chunk))
    if (removed === 0) return true
    if (kind) core.metrics.removed.inc({ kind }, removed)
    if (performance.now() > endsAt) return false
  }
}

/** Returns false if data is left; the step is then due again. */
async function removeNext(core: Core, removal: Removal) {
  const { kind, stage } = removal
  const next = await removalListsOf(core)[kind].next(core, removal)
  if ('waitMs' in next) {
    await advanceRemoval(core, removal, stage, dateOf(core, next.waitMs))
    return false
  }
  const left = await removeParts(core, next)
  if (left.length === 0) return true
  // The step `removed` needs all ids, so the one before does not shorten the list.
  const ids = stage === 'removed' && kind !== 'visitor' ? left : undefined
  await advanceRemoval(core, removal, stage, dateOf(core), ids)
  return false
}

/**
 * Removes what a list names, in steps that can be repeated, on the core with the lease.
 *
 * 1. `marking`, or `ending` for a visitor, hides the data.
 * 2. `checking` reads it again, after every earlier call has ended.
 * 3. `removing` removes it in small groups. Until then, an undo turns the removal to `restoring`.
 * 4. `removed` waits for `maxCallMs`. Then it removes what calls wrote late, the wake-ups with the ids, and
 *    the record.
 */
async function step(core: Core, removal: Removal) {
  const list = removalListsOf(core)[removal.kind]
  switch (removal.stage) {
    case 'ending':
    case 'marking':
      await list.hide(core, removal)
      return advanceRemoval(core, removal, list.check ? 'checking' : 'removing', dateOf(core, list.hiddenMs))
    case 'checking': {
      const ids = await list.check?.(core, removal)
      return ids
        ? advanceRemoval(core, removal, 'removing', dateOf(core), ids)
        : advanceRemoval(core, removal, 'checking', dateOf(core, list.hiddenMs))
    }
    case 'removing':
      if (!(await removeNext(core, removal))) return
      await list.removed?.(core, removal)
      return advanceRemoval(core, removal, 'removed', dateOf(core, maxCallMs))
    case 'restoring':
      await list.restore?.(core, removal)
      return finishRemoval(core, removal)
    case 'removed':
      if (list.removesLate && !removal.visitor?.isSwept) {
        if (!(await removeNext(core, removal))) return
        // Its wake-ups are old after the same time again.
        if (removal.visitor) return setSwept(core, removal, dateOf(core, maxCallMs))
      }
      await list.forget?.(core, removal)
      return (await sweepWakeups(core))
        ? finishRemoval(core, removal)
        : advanceRemoval(core, removal, 'removed', dateOf(core, wakeupPauseMs))
  }
}

/** Runs a step. If another core has taken over the removal, that core continues it. */
export const runRemovalStep = (core: Core, removal: Removal) =>
  whileHeld(step(core, removal)).finally(() => core.bus.emit('due', 'removal of data'))

export async function beginRemoval(core: Core, removal: Pick<Removal, 'workspaceId' | 'kind' | 'ids' | 'isDeletion'>) {
  const begun = { ...removal, removalId: newId('rmv'), stage: 'marking' as const }
  const inserted = await insertRemoval(core, begun, dateOf(core, leaseMs))
  if (inserted) await runRemovalStep(core, inserted)
}

/** Runs all due steps, also of other processes. Returns the milliseconds until the next one is due. */
export async function runDueRemovals(core: Core): Promise<number | undefined> {
  for (;;) {
    const due = await claimRemoval(core, dateOf(core, leaseMs))
    if (!due) return msUntil(await nextRemovalAt(core), core.now)
    await whileHeld(step(core, due))
    // A step can make conversations due for a review.
    core.bus.emit('due', 'sweep of old data')
  }
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

type AnyDocument = LeasedDocument & { stage: string; ids?: string[]; traces?: VisitorTraces; epochs?: string[] }

// Removals of visitors are in `erasures`, because operators see them after their end. Every write throws
// `LeaseLost` when another core owns the removal.

const fields = { until: 'nextAt', token: 'fencingToken' }
const removalLeases = ({ db }: Core) => createLeases(db.removals, fields)
const erasureLeases = ({ db }: Core) => createLeases(db.erasures, fields)
const leasesOf = ({ db }: Core, { kind }: Removal) =>
  createLeases((kind === 'visitor' ? db.erasures : db.removals) as unknown as Collection<AnyDocument>, fields)
const write = (core: Core, removal: Removal, update: UpdateFilter<AnyDocument>) =>
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

/** Inserts the erasure of a visitor, and runs its first step. */
export async function beginErasure(core: Core, erasure: ErasureDocument) {
  const lease = await erasureLeases(core).insert(erasure, dateOf(core, leaseMs))
  const removal = lease && toVisitorRemoval(lease, erasure)
  if (removal) await runRemovalStep(core, removal)
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
export async function advanceRemoval(core: Core, removal: Removal, stage: RemovalStage, nextAt: Date, ids?: string[]) {
  await write(core, removal, { $set: { stage, nextAt, ids } })
}

/**
 * Records what will be removed of a visitor, and the epochs of its logs, so that an interrupted step can be
 * repeated. Returns all recorded ids.
 */
export async function addTraces(
  core: Core,
  removal: Removal,
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
export async function setSwept(core: Core, { lease }: Removal, nextAt: Date) {
  const { visitorIds: _, ...unneeded } = noTraces()
  const emptied = Object.entries(unneeded).map(([kind, none]) => [`traces.${kind}`, none])
  await erasureLeases(core).write(lease, { $set: { isSwept: true, nextAt, ...Object.fromEntries(emptied) } })
}

/** Throws `LeaseLost` if another core owns the removal. */
export const confirmRemoval = (core: Core, removal: Removal) => leasesOf(core, removal).confirm(removal.lease)

/** The record of an erasure stays, without what identifies the visitor. */
export async function finishRemoval(core: Core, removal: Removal) {
  if (removal.kind !== 'visitor') return removalLeases(core).remove(removal.lease)
  await erasureLeases(core).write(removal.lease, {
    $set: { stage: 'finished', finishedAt: dateOf(core) },
    $unset: { visitor: '', until: '', traces: '', isSwept: '', nextAt: '', fencingToken: '' },
  })
}

/** Counts the removals that have not removed their data yet. */
export const countOpenRemovals = ({ db }: Core, workspaceId: string, exceptId?: string): Promise<number> =>
  db.removals.countDocuments({ workspaceId, stage: { $ne: 'removed' }, _id: exceptId && { $ne: exceptId } })

const toRemoval = ({ _id: _, nextAt: __, fencingToken: ___, ...rest }: RemovalDocument, lease: Lease) => ({
  lease,
  ...rest,
})

function toVisitorRemoval(lease: Lease, document: ErasureDocument): Removal | undefined {
  const { _id, workspaceId, stage, visitor: name, until, traces, isSwept = false } = document
  if (stage === 'finished' || !name || !until) return undefined
  const visitor = { name, until, traces: { ...noTraces(), ...traces }, isSwept }
  return { lease, workspaceId, kind: 'visitor', ids: [_id], stage, visitor }
}
