import { randomUUID } from 'node:crypto'
import { createJob } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import type { StreamService } from '../streams/service.ts'
import type { WakeupService } from '../wakeups/service.ts'
import type { WorkspaceService } from '../workspaces/service.ts'
import { createAvailabilityOf } from './availability.ts'
import { createAvailabilitySender } from './availability-sender.ts'
import { createOperatorPresence } from './operator-presence.ts'
import type { OperatorPresenceStore } from './operator-presence-store.ts'

const availabilityEveryMs = 500
/**
 * Interval in milliseconds at which a core renews its lease in `operator-presence.ts`. The lease
 * is more than three times as long.
 */
const presenceEveryMs = 3_000

export function createAvailabilityService(
  { bus, logger, now }: Core,
  { operatorPresence: store }: { operatorPresence: OperatorPresenceStore },
  { wakeups, streamSubscriptions }: StreamService & WakeupService,
  { siteDirectory }: Pick<WorkspaceService, 'siteDirectory'>,
) {
  const operatorPresence = createOperatorPresence({ store, processId: randomUUID(), wakeups, bus, logger, now })
  const availabilityOf = createAvailabilityOf({ presence: operatorPresence, now })
  const availabilitySender = createAvailabilitySender({
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
    availabilitySender,
    jobs: [
      createJob({ name: 'check of availability', everyMs: availabilityEveryMs, run: availabilitySender.check, logger }),
      createJob({
        name: 'renewal of operator presence',
        everyMs: presenceEveryMs,
        run: operatorPresence.renew,
        logger,
      }),
    ],
  }
}

/** Whether visitors can reach somebody, and who tells them of a change. */
export type AvailabilityService = ReturnType<typeof createAvailabilityService>
