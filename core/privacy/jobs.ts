import { createJobs } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import { logFailure } from '../errors.ts'
import { idsOf } from '../mongodb/with-id.ts'
import { hiddenOf } from './data-store.ts'
import { objectList } from './deletions.ts'
import { visitorList } from './erasures.ts'
import { removalListsOf, runDueRemovals } from './removals.ts'
import { oldDataList, sweepOldData } from './retention.ts'

/** Milliseconds between looks for work that another core has left. */
const everyMs = 60_000

/** Sets what removals remove, and tells the streams of this process what is hidden now. */
export function privacyJobs(core: Core) {
  const { bus, logger } = core
  removalListsOf.set(core, {
    visitor: visitorList,
    conversations: oldDataList('conversations'),
    leads: oldDataList('leads'),
    workspace: objectList,
    connection: objectList,
    installation: objectList,
    subscription: objectList,
  })
  bus.on('changed', (changed) => {
    const ids = changed.filter((id) => /^(cnv|lead)_/.test(id))
    if (ids.length > 0)
      announceRemoved(core, ids).catch(
        logFailure(logger, 'removal not announced; streams show the removed data until they reconnect'),
      )
  })
  return createJobs(core, {
    'sweep of old data': [everyMs, () => sweepOldData(core)],
    'removal of data': [everyMs, () => runDueRemovals(core)],
  })
}

async function announceRemoved(core: Core, changed: string[]) {
  const hidden = await hiddenOf(core, changed)
  for (const [workspaceId, found] of Map.groupBy(hidden, (each) => each.workspaceId))
    core.bus.emit('removed', workspaceId, idsOf(found))
}
