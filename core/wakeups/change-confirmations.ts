import { setTimeout as delay } from 'node:timers/promises'

/** Time in milliseconds after its last beat for which a core is known. Resting cores write one every 25 s. */
const knownForMs = 45_000

interface Waiting {
  changes: number
  /** Cores that have not confirmed. Undefined until the wake-up with the changes has arrived. */
  missing?: Set<string>
  resolve(): void
}

/**
 * Waits until all cores have applied a change, for example a ban, so that none acts on the earlier state
 * after the change was answered.
 *
 * The order of the wake-ups tells which cores these are. A core acts on cached state only for
 * `leaseMs` after a beat that it has written and read back. If the beat comes after the change, the core
 * has read the change before the beat. If it comes before, this process has read the beat when its own
 * wake-up arrives.
 *
 * @param processId id of this process, which confirms its own changes too
 */
export function createChangeConfirmations(processId: string, leaseMs: number, monotonic: () => number) {
  const waiting = new Set<Waiting>()
  const confirmed = new Map<string, number>()
  /** Time of the last beat of each other core. */
  const beats = new Map<string, number>()
  /** Number of changes in the wake-ups of this process that have arrived. */
  let arrivedUpTo = 0
  const stopping = new AbortController()

  function forgetSilent() {
    for (const [id, at] of beats) {
      if (monotonic() - at < knownForMs) continue
      beats.delete(id)
      confirmed.delete(id)
    }
  }

  /** Determines for which cores a change waits, once its wake-up has arrived. */
  function findMissing(entry: Waiting) {
    if (entry.missing || entry.changes > arrivedUpTo) return
    forgetSilent()
    const acting = [...beats].flatMap(([id, at]) => (monotonic() - at < leaseMs ? id : []))
    entry.missing = new Set([processId, ...acting].filter((id) => (confirmed.get(id) ?? 0) < entry.changes))
    if (entry.missing.size === 0) entry.resolve()
  }

  return {
    /**
     * Resolves when every core has applied the changes of this process up to a number, or after
     * `leaseMs`: a core that is silent for so long sends nothing on streams until it has read them.
     */
    async applied(changes: number) {
      const lease = new AbortController()
      const signal = AbortSignal.any([lease.signal, stopping.signal])
      const leaseEnd = delay(leaseMs, undefined, { signal }).catch(() => {})
      const { promise, resolve } = Promise.withResolvers<void>()
      const entry: Waiting = { changes, resolve }
      waiting.add(entry)
      findMissing(entry)
      try {
        await Promise.race([promise, leaseEnd])
      } finally {
        waiting.delete(entry)
        lease.abort()
      }
    },

    /** Must be called when a beat of another core has arrived. */
    beatOf: (id: string): void => void beats.set(id, monotonic()),
    /** Must be called when a wake-up of this process with this number of changes has arrived. */
    arrived(changes: number) {
      arrivedUpTo = Math.max(arrivedUpTo, changes)
      waiting.forEach(findMissing)
    },

    confirmedBy(id: string, changes: number) {
      confirmed.set(id, Math.max(changes, confirmed.get(id) ?? 0))
      for (const entry of waiting) {
        if (entry.changes > changes || !entry.missing?.delete(id)) continue
        if (entry.missing.size === 0) entry.resolve()
      }
    },

    /** Returns the number of other live cores, including those that rest. */
    others() {
      forgetSilent()
      return beats.size
    },

    stop: () => stopping.abort(),
  }
}
