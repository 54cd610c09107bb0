import { createJob } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import type { WakeupStore } from './wakeup-store.ts'
import { wakeupsOf } from './wakeups.ts'

/**
 * How long wake-ups are kept. Cursors read them within a second. Wake-ups contain ids and events, so
 * they must be gone within the minute after which a removal ends.
 */
const keptMs = 30_000
const sweepEveryMs = 60_000

export function createWakeupService(core: Core, { wakeups: store }: { wakeups: WakeupStore }) {
  const { logger, now } = core
  /**
   * Removes the wake-ups that are older than half a minute. Returns whether none is left. If the
   * newest wake-up is that old, it is left until a later call.
   */
  const sweepWakeups = () => store.removeBefore(new Date(now() - keptMs), new Date(now()))
  return {
    wakeups: wakeupsOf(core),
    sweepWakeups,
    jobs: [createJob({ name: 'sweep of wake-ups', everyMs: sweepEveryMs, run: sweepWakeups, logger })],
  }
}

export type WakeupService = ReturnType<typeof createWakeupService>
