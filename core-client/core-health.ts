import { setTimeout as delay } from 'node:timers/promises'
import type { CoreNode, CorePool } from './core-pool.ts'
import type { CoreTransport } from './core-transport.ts'

const PROBE_EVERY_MS = 250
const PROBE_MAX_EVERY_MS = 1_000
const SLICE_MS = 50
/** A core counts as silent after this number of 50 ms waits without an answer. */
const SILENT_SLICES = 10
/**
 * A silent core is cut only if another answered within this time. Otherwise the cores are slow under load,
 * and a cut would not help.
 */
const OTHER_ALIVE_WITHIN_MS = 350
/** A core that is silent for this time is cut even if no other core answers. */
const SOLE_SILENT_MS = 15_000

/**
 * Probes a core until the signal aborts, less often while it does not answer. The pool skips a core whose
 * answer closes the connection: it is starting or stopping. A core that is silent for 500 ms while another
 * answers is cut, so that its calls fail over. If no other core answers, it is cut after 15 s.
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

/** Waits in short slices. With one long timer, a pause of this process would look like a silent core. */
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
