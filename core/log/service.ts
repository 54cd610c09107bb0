import { createJob } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import { logOf } from './event-log.ts'
import type { EventStore } from './event-store.ts'
import { logHeadsOf } from './log-heads.ts'
import { createTransientSweep } from './transient-sweep.ts'

const sweepEveryMs = 60_000

export function createLogService(core: Core, { events }: { events: EventStore }) {
  const { logger, now } = core
  const logHeads = logHeadsOf(core)
  const transientSweep = createTransientSweep({ events, now })

  async function sweep() {
    for (let more = true; more; ) ({ more } = await transientSweep.sweep())
  }

  return {
    log: logOf(core),
    logHeads,
    transientSweep,
    jobs: [createJob({ name: 'sweep of transient events', everyMs: sweepEveryMs, run: sweep, logger })],
  }
}

export type LogService = ReturnType<typeof createLogService>
