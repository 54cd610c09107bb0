import { randomUUID } from 'node:crypto'
import { createJob, type Job } from '../concurrency/job.ts'
import type { CoreKit } from '../kit.ts'
import type { StreamService } from '../streams/service.ts'
import type { WakeupService } from '../wakeups/service.ts'
import type { WorkspaceService } from '../workspaces/service.ts'
import { type AvailabilityOf, createAvailabilityOf } from './availability.ts'
import { type AvailabilityWatch, createAvailabilityWatch } from './availability-watch.ts'
import { createOperatorPresence, type OperatorPresence } from './operator-presence.ts'
import type { OperatorPresenceStore } from './operator-presence-store.ts'

/** Whether visitors can reach somebody, and who tells them of a change. */
export interface AvailabilityService {
  operatorPresence: OperatorPresence
  availabilityOf: AvailabilityOf
  availabilityWatch: AvailabilityWatch
  jobs: Job[]
}

const availabilityEveryMs = 500
/**
 * Interval in milliseconds at which a core renews its lease in `operator-presence.ts`. The lease
 * is more than three times as long.
 */
const presenceEveryMs = 3_000

export function createAvailabilityService(
  { bus, logger, now }: CoreKit,
  { operatorPresence: store }: { operatorPresence: OperatorPresenceStore },
  { wakeups, streamSubscriptions }: StreamService & WakeupService,
  { siteDirectory }: Pick<WorkspaceService, 'siteDirectory'>,
): AvailabilityService {
  const operatorPresence = createOperatorPresence({ store, processId: randomUUID(), wakeups, bus, logger, now })
  const availabilityOf = createAvailabilityOf({ presence: operatorPresence, now })
  const availabilityWatch = createAvailabilityWatch({
    directory: siteDirectory,
    availabilityOf,
    subscriptions: streamSubscriptions,
    bus,
    logger,
    now,
  })
  return {
    operatorPresence,
    availabilityOf,
    availabilityWatch,
    jobs: [
      createJob({ name: 'check of availability', everyMs: availabilityEveryMs, run: availabilityWatch.check, logger }),
      createJob({
        name: 'renewal of operator presence',
        everyMs: presenceEveryMs,
        run: operatorPresence.renew,
        logger,
      }),
    ],
  }
}
