import { createJob } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import { createEventLog } from './event-log.ts'
import type { EventStore } from './event-store.ts'
import { createLogHeads } from './log-heads.ts'
import { createTransientSweep } from './transient-sweep.ts'

/** Minimum time that events without replay (typing) stay in the log. */
const transientMs = 3_600_000
const sweepEveryMs = 60_000

export function createLogService({ bus, metrics, logger, now }: Core, { events }: { events: EventStore }) {
  const logHeads = createLogHeads(events, { now, rememberMs: transientMs / 6 })
  bus.on('advanced', logHeads.advance)
  const transientSweep = createTransientSweep({ events, now })

  async function sweep() {
    for (let more = true; more; ) ({ more } = await transientSweep.sweep())
  }

  return {
    log: createEventLog({
      store: events,
      heads: logHeads,
      metrics,
      now,
      transientMs,
      onAppended: (event) => bus.emit('appended', event),
    }),
    logHeads,
    transientSweep,
    jobs: [createJob({ name: 'sweep of transient events', everyMs: sweepEveryMs, run: sweep, logger })],
  }
}

export type LogService = ReturnType<typeof createLogService>
