import type { Core } from '../core.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { retentionOf } from '../workspaces/retention.ts'
import { factsOf, repairInbox } from './conversation-facts.ts'
import { dataOf, hiddenBy, hideData, idOnly, ids as idsOf, showData } from './data-store.ts'
import { cutOffOf, type DataKind, hiddenMs, isConversationDue } from './model.ts'
import type { Removal } from './removal-store.ts'
import type { RemovalList } from './removals.ts'

/** Returns what is older than the stored policy allows. */
async function dueOf(core: Core, kind: DataKind, { workspaceId, isDeletion }: Removal, ids: string[]) {
  const workspace = await core.db.workspaces.findOne({ _id: workspaceId }, { projection: { retention: 1 } })
  if (!workspace || isDeletion) return ids
  const days = retentionOf(core, workspace)
  if (kind === 'leads') {
    const cutOff = cutOffOf(days.leads, core.now())
    if (!cutOff) return []
    return idsOf(await core.db.leads.find({ _id: { $in: ids }, createdAt: { $lte: cutOff } }, idOnly).toArray())
  }
  const facts = await factsOf(core, ids)
  return facts.flatMap((each) => (isConversationDue(each, days, core.now()) ? each.conversationId : []))
}

/**
 * The removal of conversations or leads. After every earlier call has ended, reads them again: what was
 * used meanwhile, or may stay now, is shown again. So no acknowledged message is lost.
 */
export const oldDataList = (kind: DataKind): RemovalList => ({
  hiddenMs,
  removesLate: true,

  async hide(core, { ids, lease }) {
    await hideData(core, kind, ids, lease.id)
    await wakeupsOf(core).stateChanged(...ids)
  },

  async check(core, removal) {
    const hidden = await hiddenBy(core, kind, removal)
    const due = await dueOf(core, kind, removal, hidden)
    const spared = [...new Set(hidden).difference(new Set(due))]
    if (kind === 'conversations') for (const id of spared) await repairInbox(core, id)
    // Before the decision is recorded, because this step is not repeated afterwards.
    await showData(core, kind, spared, removal.lease.id)
    await wakeupsOf(core).stateChanged(...spared)
    core.metrics.spared.inc(spared.length)
    return due
  },

  async next(core, removal) {
    const items = removal.stage === 'removed' ? removal.ids : await hiddenBy(core, kind, removal)
    return { items, partsOf: (some) => dataOf[kind](core, some) }
  },
})
