import type { Bus } from '../bus.ts'
import { createPace } from '../concurrency/pace.ts'
import { newId } from '../ids.ts'
import type { CoreMetrics } from '../metrics.ts'
import { msUntil, whileHeld } from '../mongodb/leases.ts'
import { leaseMs, maxCallMs, type RemovalKind } from './model.ts'
import type { Part } from './parts-store.ts'
import type { Removal, RemovalStore } from './removal-store.ts'

/** What a removal removes, and how it is hidden: a visitor, old data, or an object. */
export interface RemovalList {
  /** Hides the data, so that later calls do not find it. */
  hide(removal: Removal): Promise<void>
  /** Time in milliseconds after which no earlier call uses the hidden data. */
  hiddenMs: number
  /**
   * Reads the hidden data again after that time. Returns the ids of the data to remove. Returns
   * undefined if it has hidden more data; the check must then be repeated.
   */
  check?(removal: Removal): Promise<string[] | undefined>
  /** Returns what to remove now, or the pause in milliseconds before the next try. */
  next(removal: Removal): Promise<NextParts | { waitMs: number }>
  /** Called when everything has been removed for the first time. */
  removed?(removal: Removal): Promise<void>
  /** Whether data that calls wrote late is removed a minute later. */
  removesLate: boolean
  /** Shows hidden data again, of which nothing was removed. */
  restore?(removal: Removal): Promise<void>
  /** Removes the id of the removal from the documents that still have it. */
  forget?(removal: Removal): Promise<void>
}

interface NextParts<Item = string> {
  /** Ids of what to remove, or sessions. */
  items: Item[]
  /** Returns the parts (groups of documents) to remove for some of the items. */
  partsOf(items: Item[]): Part[]
}

/** Number of items whose data is removed together. */
const groupSize = 20
/** Maximum number of documents that one call of the database removes. */
const chunk = 100
/** Time in milliseconds after which a step ends when it has removed something, well within its lease. */
const stepMs = 5_000
/** Maximum share of the time that the calls of the database take. */
const share = 1 / 7
const maxPauseMs = 500
/** Pause in milliseconds before the newest wake-up is removed. Within it, every core reads the next one. */
const wakeupPauseMs = 2_000

/** Removes parts with pauses, so that database calls for messages are not delayed. */
export function createPacedRemoval(metrics: Pick<CoreMetrics, 'removed'>) {
  const paced = createPace({ share, maxPauseMs })

  /** Removes a part. Returns false if the time was over before everything was removed. */
  async function removePart({ kind, remove }: Part, endsAt: number): Promise<boolean> {
    for (;;) {
      const removed = await paced(() => remove(chunk))
      if (removed === 0) return true
      if (kind) metrics.removed.inc({ kind }, removed)
      if (performance.now() > endsAt) return false
    }
  }

  return {
    /** Removes the parts of all items. Returns the items that are left after `stepMs`. */
    async remove<Item>({ items, partsOf }: NextParts<Item>): Promise<Item[]> {
      const endsAt = performance.now() + stepMs
      for (let start = 0; start < items.length; start += groupSize) {
        if (start > 0 && performance.now() > endsAt) return items.slice(start)
        for (const part of partsOf(items.slice(start, start + groupSize)))
          if (!(await removePart(part, endsAt))) return items.slice(start)
      }
      return []
    },
  }
}

export type PacedRemoval = ReturnType<typeof createPacedRemoval>

/**
 * Removes what a list names, in steps. Each step can be repeated, and runs on the core that holds the
 * lease of the removal.
 *
 * 1. `marking`, or `ending` for a visitor, hides the data.
 * 2. `checking`, after every earlier call has ended, reads the data again.
 * 3. `removing` removes the data in small groups.
 *    Until then, an undo turns it to `restoring`, which shows the data again.
 * 4. `removed` waits for `maxCallMs`, then removes what calls still wrote after their callers gave up.
 *    Then it removes the wake-ups with the removed ids, and the record.
 */
export function createRemovals(dependencies: {
  store: RemovalStore
  lists: Record<RemovalKind, RemovalList>
  paced: PacedRemoval
  sweepWakeups: () => Promise<boolean>
  bus: Bus
  now: () => number
}) {
  const { store, lists, paced, sweepWakeups, bus, now } = dependencies

  const later = (ms: number) => new Date(now() + ms)

  /** Removes the next data. Returns false if data is left; the step is then due again. */
  async function removeNext(removal: Removal): Promise<boolean> {
    const { kind, stage } = removal
    const next = await lists[kind].next(removal)
    if ('waitMs' in next) {
      await store.advance(removal, stage, later(next.waitMs))
      return false
    }
    const left = await paced.remove(next)
    if (left.length === 0) return true
    // The step `removed` needs the ids of all data, so the step before it does not shorten the list.
    await store.advance(removal, stage, later(0), stage === 'removed' && kind !== 'visitor' ? left : undefined)
    return false
  }

  async function step(removal: Removal): Promise<void> {
    const list = lists[removal.kind]
    switch (removal.stage) {
      case 'ending':
      case 'marking':
        await list.hide(removal)
        return store.advance(removal, list.check ? 'checking' : 'removing', later(list.hiddenMs))
      case 'checking': {
        const ids = await list.check?.(removal)
        return ids
          ? store.advance(removal, 'removing', later(0), ids)
          : store.advance(removal, 'checking', later(list.hiddenMs))
      }
      case 'removing':
        if (!(await removeNext(removal))) return
        await list.removed?.(removal)
        return store.advance(removal, 'removed', later(maxCallMs))
      case 'restoring':
        await list.restore?.(removal)
        return store.finish(removal, later(0))
      case 'removed':
        if (list.removesLate && !removal.visitor?.isSwept) {
          if (!(await removeNext(removal))) return
          // Its wake-ups are old after the same time again.
          if (removal.visitor) return store.setSwept(removal, later(maxCallMs))
        }
        await list.forget?.(removal)
        return (await sweepWakeups())
          ? store.finish(removal, later(0))
          : store.advance(removal, 'removed', later(wakeupPauseMs))
    }
  }

  const runDue = (removal: Removal) => whileHeld(step(removal))
  const runStep = (removal: Removal) => runDue(removal).finally(() => bus.emit('due', 'removal of data'))

  return {
    /** Runs the due step of a removal. If another core has taken over the removal, that core continues it. */
    runStep,
    /** Records the removal of conversations or leads, and hides them. */
    async begin(removal: Pick<Removal, 'workspaceId' | 'kind' | 'ids' | 'isDeletion'>): Promise<void> {
      const inserted = await store.insert({ ...removal, removalId: newId('rmv'), stage: 'marking' }, later(leaseMs))
      if (inserted) await runStep(inserted)
    },

    /**
     * Runs every due step, including steps that another process did not complete. Returns the time in
     * milliseconds until the next step is due.
     */
    async work(): Promise<number | undefined> {
      for (;;) {
        const due = await store.claim(later(0), later(leaseMs))
        if (!due) return msUntil(await store.nextAt(), now)
        await runDue(due)
        // A step can make conversations of the workspace due for a review.
        bus.emit('due', 'sweep of old data')
      }
    },
  }
}

export type Removals = ReturnType<typeof createRemovals>
