import { newId } from '../ids.ts'
import type { CoreMetrics } from '../metrics.ts'
import type { WakeupService } from '../wakeups/service.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { RetentionOf } from '../workspaces/retention.ts'
import type { ConversationFactsStore } from './conversation-facts-store.ts'
import type { DataRemoval } from './data-removal-store.ts'
import type { Deletions } from './deletions.ts'
import { LeaseLost } from './lease-store.ts'
import {
  cutOffOf,
  hiddenMs,
  isConversationDue,
  isDeletion,
  leaseMs,
  maxCallMs,
  type Removal,
  type RemovalStage,
} from './model.ts'
import type { PacedRemoval } from './paced-removal.ts'
import type { RemovalStore } from './removal-store.ts'
import type { RetentionStore } from './retention-store.ts'

type DataKind = 'conversations' | 'leads'
type DataRemovalRecord = Removal & { kind: DataKind }

export interface Removals {
  /** Records the removal of conversations or leads, and hides them. */
  begin(removal: Pick<Removal, 'workspaceId' | 'ids' | 'isDeletion'> & { kind: DataKind }): Promise<void>
  /** Runs every due step, including steps that another process did not complete. */
  work(): Promise<void>
}

/** Number of conversations or leads that are removed together. */
const groupSize = 20
/** Pause in milliseconds before the newest wake-up is removed. Within it, every core reads the next one. */
const wakeupPauseMs = 2_000
/** Maximum time in milliseconds for a step, so that it ends well within its lease. */
const stepMs = 5_000

/**
 * Removes conversations and leads in four steps. Each step can be repeated.
 *
 * 1. `marking` hides them, so that later calls do not find them. Wake-ups tell every core.
 * 2. `checking`, after every earlier call has ended, reads them again. Data that was used in the
 *    meantime, or that a changed policy allows to keep, is shown again. So no acknowledged message
 *    is lost.
 * 3. `removing` removes the rest in small groups.
 * 4. `removed`, after `maxCallMs`, removes data that a call wrote after its caller stopped
 *    waiting, and the wake-ups with the removed ids.
 */
export function createRemovals(dependencies: {
  store: RemovalStore
  data: DataRemoval
  retention: Pick<RetentionStore, 'conversationsOfLeads' | 'leadsBefore' | 'periodsOf' | 'reviewAll'>
  factStore: Pick<ConversationFactsStore, 'factsOf' | 'repairInbox'>
  retentionOf: RetentionOf
  paced: PacedRemoval
  /** Runs the due step of a deletion. */
  runDeletionStep: Deletions['runStep']
  wakeups: Pick<Wakeups, 'stateChanged'>
  sweepWakeups: WakeupService['sweepWakeups']
  metrics: CoreMetrics
  now: () => number
}): Removals {
  const { store, data, retention, factStore, retentionOf, paced, runDeletionStep, wakeups, metrics, now } = dependencies
  const { sweepWakeups } = dependencies
  const later = (ms: number) => new Date(now() + ms)

  /**
   * Returns the ids of data that is older than the present policy allows. The policy is read from
   * the database.
   */
  async function dueOf({ workspaceId, kind, isDeletion }: DataRemovalRecord, ids: string[]): Promise<Set<string>> {
    const workspace = await retention.periodsOf(workspaceId)
    if (!workspace || isDeletion) return new Set(ids)
    const days = retentionOf(workspace)
    if (kind === 'leads') {
      const cutOff = cutOffOf(days.leads, now())
      return new Set(cutOff && (await retention.leadsBefore(ids, cutOff)))
    }
    const facts = await factStore.factsOf(ids)
    return new Set(
      facts.filter((each) => isConversationDue(each, days, now())).map(({ conversationId }) => conversationId),
    )
  }

  /** Removes data in groups until the step has run for `stepMs`. Returns the ids that are left. */
  async function removeSome({ kind, workspaceId }: DataRemovalRecord, ids: string[]): Promise<string[]> {
    const began = performance.now()
    for (let start = 0; start < ids.length; start += groupSize) {
      if (start > 0 && performance.now() - began > stepMs) return ids.slice(start)
      const group = ids.slice(start, start + groupSize)
      // A conversation with a form may have been kept only for its lead. Make its review due before
      // the removal, because the process may die. Make it due again afterwards, because a sweep may
      // have run during the removal.
      const freed = kind === 'leads' ? await retention.conversationsOfLeads(group) : []
      await retention.reviewAll(workspaceId, freed, new Date(now()))
      await paced[kind](group)
      await retention.reviewAll(workspaceId, freed, new Date(now()))
    }
    return []
  }

  const steps: Record<RemovalStage, (removal: DataRemovalRecord) => Promise<void>> = {
    async marking(removal) {
      await data.hide(removal.kind, removal.ids, removal.removalId)
      if (removal.kind === 'conversations') await wakeups.stateChanged(...removal.ids)
      await store.advance(removal, 'checking', later(hiddenMs))
    },

    async checking(removal) {
      const { removalId, kind } = removal
      const hidden = await data.hiddenBy(kind, removal.ids, removalId)
      const due = await dueOf(removal, hidden)
      const spared = hidden.filter((id) => !due.has(id))
      if (kind === 'conversations') for (const id of spared) await factStore.repairInbox(id)
      // Show the data before the decision is recorded, because this step is not repeated
      // afterwards.
      await data.show(kind, spared, removalId)
      metrics.spared.inc(spared.length)
      await store.advance(removal, 'removing', later(0), [...due])
    },

    async removing(removal) {
      const left = await removeSome(removal, await data.hiddenBy(removal.kind, removal.ids, removal.removalId))
      await (left.length > 0
        ? store.advance(removal, 'removing', later(0))
        : store.advance(removal, 'removed', later(maxCallMs)))
    },

    async removed(removal) {
      const left = await removeSome(removal, removal.ids)
      await (left.length > 0 ? store.advance(removal, 'removed', later(0), left) : finish(removal))
    },
  }

  /** Ends a removal or deletion when no wake-up has its ids any more. */
  async function finish(removal: Removal) {
    await ((await sweepWakeups()) ? store.finish(removal) : store.advance(removal, 'removed', later(wakeupPauseMs)))
  }

  /** Runs the due step. If another core has taken over the removal, that core continues it. */
  async function runStep(removal: Removal) {
    const { kind, stage } = removal
    const step = !isDeletion(kind)
      ? steps[stage]({ ...removal, kind })
      : stage === 'removed'
        ? finish(removal)
        : runDeletionStep({ ...removal, stage })
    await step.catch((error: unknown) => {
      if (!(error instanceof LeaseLost)) throw error
    })
  }

  return {
    async begin(removal) {
      const begun = { ...removal, removalId: newId('rmv'), stage: 'marking' as const }
      const inserted = await store.insert(begun, later(leaseMs))
      if (inserted) await runStep(inserted)
    },

    async work() {
      for (;;) {
        const due = await store.claim(new Date(now()), later(leaseMs))
        if (!due) return
        await runStep(due)
      }
    },
  }
}
