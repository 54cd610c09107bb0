import { createPace } from '../concurrency/pace.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { newId } from '../ids.ts'
import { msUntil, whileHeld } from '../mongodb/leases.ts'
import { sweepWakeups } from '../wakeups/wakeups.ts'
import type { Part } from './data-store.ts'
import { leaseMs, maxCallMs, type RemovalKind } from './model.ts'
import {
  advanceRemoval,
  claimRemoval,
  finishRemoval,
  insertRemoval,
  nextRemovalAt,
  type Removal,
  setSwept,
} from './removal-store.ts'

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
