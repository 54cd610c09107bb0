import { setTimeout as delay } from 'node:timers/promises'
import type { Core, CorePool } from './core-pool.ts'
import type { CoreTransport } from './core-transport.ts'

const PROBE_EVERY_MS = 250
const PROBE_AT_LEAST_EVERY_MS = 1_000
const SLICE_MS = 50
/** Half a second without an answer. */
const SILENT_SLICES = 10
/** How long a sole core may be silent. */
const SOLE_SILENT_MS = 15_000

/**
 * Asks a core for a sign of life until the signal ends it, one question at a time, less often while it does not answer. One that
 * stays silent for half a second is left aside; where another core is in good health the connection is cut, so that
 * what waits on it goes there. A sole core is given 15 seconds: to ask it again would not make it faster.
 */
export async function watchCore(options: {
  core: Core & { transport: CoreTransport }
  cores: CorePool
  random: () => number
  signal: AbortSignal
}): Promise<void> {
  const { core, cores, random, signal } = options
  let pauseMs = PROBE_EVERY_MS
  let heardAt = performance.now()
  for (;;) {
    await delay(pauseMs * (0.75 + random() / 2), undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    const outcome = await ask(core)
    if (signal.aborted) return
    pauseMs = outcome === 'alive' ? PROBE_EVERY_MS : Math.min(PROBE_AT_LEAST_EVERY_MS, pauseMs * 2)
    if (outcome !== 'silent') heardAt = performance.now()
    if (outcome === 'alive') cores.revive(core)
    else if (outcome === 'dead') cores.setAside(core)
    else if (cores.hasAnother(core) || performance.now() - heardAt >= SOLE_SILENT_MS) {
      cores.setAside(core)
      core.transport.cut()
    }
  }
}

type Outcome = 'alive' | 'dead' | 'silent'

/** In short waits: a process that itself stood still must not take that for the core's silence. */
async function ask({ transport }: { transport: CoreTransport }): Promise<Outcome> {
  const question = new AbortController()
  const answer = transport.probe(question.signal).then(
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
    question.abort()
  }
}
