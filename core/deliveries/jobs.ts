import { measureAtScrape } from '../../platform/observability/metrics.ts'
import { createJob, type Job } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import { deliveryDispatchOf } from './dispatch.ts'
import { pendingFaultsOf } from './faults.ts'
import { leadFanOutOf } from './lead-capture.ts'
import { closePauses, reconcilePauses } from './pauses.ts'
import { proceedRecoveries } from './recovery.ts'
import { changedSourcesOf } from './sources.ts'
import { unsweptSuppressionsOf } from './suppressing.ts'
import { measureDestinations, measureQueue } from './waits.ts'

/** Interval in milliseconds at which a core looks for what a crash has left. */
const everyMs = 60_000
const measureQueueEveryMs = 5_000
const measureDestinationsEveryMs = 30_000

export const deliveryJobs = (core: Core): Job[] =>
  [
    { name: 'end deliveries of suppressed people', run: unsweptSuppressionsOf(core).run },
    { name: 'finish lead fan-out', run: leadFanOutOf(core).run },
    { name: 'disable subscriptions', run: pendingFaultsOf(core).run },
    { name: 'hold and release deliveries', run: () => reconcilePauses(core) },
    { name: 'recover deliveries', run: () => proceedRecoveries(core) },
  ].map((job) => createJob({ ...job, everyMs, logger: core.logger }))

export const deliveryLags = (core: Core): Record<string, () => number> => ({
  lead_fan_out: leadFanOutOf(core).lagMs,
  faults: pendingFaultsOf(core).lagMs,
  suppressions: unsweptSuppressionsOf(core).lagMs,
})

/** Makes the parts that follow the bus, and the measurements of a scrape. */
export function openDeliveries(core: Core) {
  changedSourcesOf(core)
  deliveryDispatchOf(core)
  const { disabledSubscriptions, deliveriesDue } = core.metrics
  measureAtScrape(disabledSubscriptions, measureDestinationsEveryMs, () => measureDestinations(core))
  measureAtScrape(deliveriesDue, measureQueueEveryMs, () => measureQueue(core))
}

export function closeDeliveries(core: Core) {
  deliveryDispatchOf(core).close()
  closePauses(core)
}
