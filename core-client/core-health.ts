import { setTimeout as delay } from 'node:timers/promises'
import type { CoreNode, CorePool } from './core-pool.ts'
import type { CoreTransport } from './core-transport.ts'

const PROBE_EVERY_MS = 250
const PROBE_MAX_EVERY_MS = 1_000
const SLICE_MS = 50
/** Slices without an answer until a core counts as silent: 500 ms. */
const SILENT_SLICES = 10
/**
 * A connection is cut only if another core answered this recently: under load all cores are slow.
 */
const OTHER_ALIVE_WITHIN_MS = 350
/** How long the only core may be silent. */
const SOLE_SILENT_MS = 15_000

/**
 * Probes a core until the signal aborts, one probe at a time, less often while it does not answer.
 *
 * If a core is silent for 500 ms and another core has just answered, the pool skips it and its
 * connection is cut, so that its calls fail over. The only core gets 15 s, because there is no
 * other to call.
 */
export async function watchCore(options: {
  core: CoreNode & { transport: CoreTransport }
  cores: CorePool
  random: () => number
  signal: AbortSignal
}): Promise<void> {
  const { core, cores, random, signal } = options
  let pauseMs = PROBE_EVERY_MS
  let lastAnswerAt = performance.now()
  for (;;) {
    await delay(pauseMs * (0.75 + random() / 2), undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    const outcome = await probe(core)
    if (signal.aborted) return
    pauseMs = outcome === 'alive' ? PROBE_EVERY_MS : Math.min(PROBE_MAX_EVERY_MS, pauseMs * 2)
    if (outcome !== 'silent') lastAnswerAt = performance.now()
    if (outcome === 'alive') cores.markAlive(core)
    else if (outcome === 'dead') cores.markFailed(core)
    else if (
      cores.hasOtherAlive(core, Date.now() - OTHER_ALIVE_WITHIN_MS) ||
      performance.now() - lastAnswerAt >= SOLE_SILENT_MS
    ) {
      cores.markFailed(core)
      core.transport.cut()
    }
  }
}

type Outcome = 'alive' | 'dead' | 'silent'

/** Waits in short slices, so that a pause of this process does not count as silence of the core. */
async function probe({ transport }: { transport: CoreTransport }): Promise<Outcome> {
  const timeout = new AbortController()
  const answer = transport.probe(timeout.signal).then(
    (): Outcome => 'alive',
    (): Outcome => 'dead',
  )
  try {
    for (let slice = 0; slice < SILENT_SLICES; slice++) {
      const outcome = await Promise.race([answer, delay(SLICE_MS)])
      if (outcome !== undefined) return outcome
    }
    return 'silent'
  } finally {
    timeout.abort()
  }
}
