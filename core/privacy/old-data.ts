import type { CoreMetrics } from '../metrics.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { RetentionOf } from '../workspaces/retention.ts'
import type { ConversationFactsStore } from './conversation-facts-store.ts'
import type { DataStore } from './data-store.ts'
import { cutOffOf, type DataKind, hiddenMs, isConversationDue } from './model.ts'
import type { Removal } from './removal-store.ts'
import type { RemovalList } from './removals.ts'
import type { RetentionStore } from './retention-store.ts'

/**
 * The removal of conversations or leads. After every earlier call has ended, reads them again. Data
 * that was used in the meantime, or that a changed policy allows to keep, is shown again. So no
 * acknowledged message is lost.
 */
export function createOldDataList(
  kind: DataKind,
  dependencies: {
    data: DataStore
    retention: Pick<RetentionStore, 'leadsBefore' | 'periodsOf'>
    factStore: Pick<ConversationFactsStore, 'factsOf' | 'repairInbox'>
    retentionOf: RetentionOf
    wakeups: Pick<Wakeups, 'stateChanged'>
    metrics: Pick<CoreMetrics, 'spared'>
    now: () => number
  },
): RemovalList {
  const { data, retention, factStore, retentionOf, wakeups, metrics, now } = dependencies
  const hiddenBy = ({ ids, lease }: Removal) => data.hiddenBy(kind, ids, lease.id)

  /**
   * Returns the ids of data that is older than the present policy allows. The policy is read from
   * the database.
   */
  async function dueOf({ workspaceId, isDeletion }: Removal, ids: string[]): Promise<string[]> {
    const workspace = await retention.periodsOf(workspaceId)
    if (!workspace || isDeletion) return ids
    const days = retentionOf(workspace)
    if (kind === 'leads') {
      const cutOff = cutOffOf(days.leads, now())
      return cutOff ? retention.leadsBefore(ids, cutOff) : []
    }
    const facts = await factStore.factsOf(ids)
    return facts.flatMap((each) => (isConversationDue(each, days, now()) ? each.conversationId : []))
  }

  return {
    hiddenMs,
    removesLate: true,

    async hide({ ids, lease }) {
      await data.hide(kind, ids, lease.id)
      await wakeups.stateChanged(...ids)
    },

    async check(removal) {
      const hidden = await hiddenBy(removal)
      const due = await dueOf(removal, hidden)
      const spared = [...new Set(hidden).difference(new Set(due))]
      if (kind === 'conversations') for (const id of spared) await factStore.repairInbox(id)
      // Show the data before the decision is recorded, because this step is not repeated
      // afterwards.
      await data.show(kind, spared, removal.lease.id)
      await wakeups.stateChanged(...spared)
      metrics.spared.inc(spared.length)
      return due
    },

    async next(removal) {
      const items = removal.stage === 'removed' ? removal.ids : await hiddenBy(removal)
      return { items, partsOf: data.partsOf[kind] }
    },
  }
}
