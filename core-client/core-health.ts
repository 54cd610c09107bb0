import { setTimeout as delay } from 'node:timers/promises'
import type { CoreNode, CorePool } from './core-pool.ts'
import type { CoreTransport } from './core-transport.ts'

const PROBE_EVERY_MS = 250
const PROBE_MAX_EVERY_MS = 1_000
const SLICE_MS = 50
/** A core is treated as silent after this number of 50 ms waits without an answer. */
const SILENT_SLICES = 10
/**
 * A silent core's connections are cut only if another core answered within this time. If no core
 * answers, the cores are slow under load, and a cut would not help.
 */
const OTHER_ALIVE_WITHIN_MS = 350
/** Time without an answer after which the connections are cut, even if no other core answers. */
const SOLE_SILENT_MS = 15_000

/**
 * Probes a core until the signal aborts, one probe at a time. The interval grows while the core
 * does not answer. The pool skips a core whose answer closes the connection. Such a core is starting,
 * or it is stopping and will close its idle connections.
 *
 * If a core is silent for 500 ms and another core has just answered, the connections to the silent
 * core are cut. Its calls then fail over, and the pool skips the core. If no other core answers, the
 * calls cannot fail over, so the connections are cut only after 15 s.
 */
export async function watchCore(options: {
  core: CoreNode & { transport: CoreTransport }
  cores: CorePool
  signal: AbortSignal
}) {
  const { core, cores, signal } = options
  let pauseMs = PROBE_EVERY_MS
  let lastAnswerAt = performance.now()
  for (;;) {
    await delay(pauseMs * (0.75 + Math.random() / 2), undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    const outcome = await probe(core)
    if (signal.aborted) return
    pauseMs = outcome === 'alive' ? PROBE_EVERY_MS : Math.min(PROBE_MAX_EVERY_MS, pauseMs * 2)
    if (outcome !== 'silent') lastAnswerAt = performance.now()
    if (outcome === 'alive') cores.markAlive(core)
    else if (outcome === 'dead' || outcome === 'unready') cores.markFailed(core)
    else if (
      cores.hasOtherAlive(core, Date.now() - OTHER_ALIVE_WITHIN_MS) ||
      performance.now() - lastAnswerAt >= SOLE_SILENT_MS
    ) {
      cores.markFailed(core)
      core.transport.cut()
    }
  }
}

type Outcome = 'alive' | 'unready' | 'dead' | 'silent'

/**
 * Sends one probe and waits for its answer in short slices. With one long timer, a pause of this
 * process would look like a silent core.
 */
async function probe({ transport }: { transport: CoreTransport }): Promise<Outcome> {
  const timeout = new AbortController()
  const answer = transport.probe(timeout.signal).then(
    (isRunning): Outcome => (isRunning ? 'alive' : 'unready'),
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
