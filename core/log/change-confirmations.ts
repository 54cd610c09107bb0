import { setTimeout as delay } from 'node:timers/promises'
import { createLruCache } from '../../platform/lru-cache.ts'

export interface ChangeConfirmations {
  /**
   * Resolves when every core has applied the changes of this process up to a number. A core that
   * does not confirm them in time sends nothing to streams until it has read them.
   */
  applied(changes: number): Promise<void>
  /** Must be called when a core has confirmed the changes of this process up to a number. */
  confirmedBy(processId: string, changes: number): void
  stop(): void
}

const maxCores = 1_000

interface Waiting {
  changes: number
  missing: Set<string>
  resolve(): void
}

/**
 * Waits until all cores have applied a change, so that no core acts on the state before a change
 * after the change was answered, for example a ban.
 */
export function createChangeConfirmations(dependencies: {
  /** Returns the ids of the running cores that confirm changes. */
  processes: () => Promise<string[]>
  /** Time in milliseconds after which a core that has not confirmed a change no longer acts on earlier state. */
  leaseMs: number
}): ChangeConfirmations {
  const { processes, leaseMs } = dependencies
  const waiting = new Set<Waiting>()
  const confirmed = createLruCache<number>(maxCores)
  const stopping = new AbortController()

  return {
    async applied(changes) {
      const lease = new AbortController()
      const ends = AbortSignal.any([lease.signal, stopping.signal])
      const leaseEnd = delay(leaseMs, undefined, { signal: ends }).catch(() => {})
      const { promise, resolve } = Promise.withResolvers<void>()
      const entry: Waiting = { changes, missing: new Set(), resolve }
      waiting.add(entry)
      try {
        // If the register cannot be read, every core may be missing.
        const running = await Promise.race([processes().catch(() => undefined), leaseEnd])
        if (running === undefined) return void (await leaseEnd)
        entry.missing = new Set(running.filter((id) => (confirmed.get(id) ?? 0) < changes))
        for (const id of confirmed.keys()) if (!running.includes(id)) confirmed.delete(id)
        if (entry.missing.size > 0) await Promise.race([promise, leaseEnd])
      } finally {
        waiting.delete(entry)
        lease.abort()
      }
    },

    confirmedBy(processId, changes) {
      confirmed.set(processId, Math.max(changes, confirmed.get(processId) ?? 0))
      for (const entry of waiting) {
        if (entry.changes > changes || !entry.missing.delete(processId)) continue
        if (entry.missing.size === 0) entry.resolve()
      }
    },

    stop: () => stopping.abort(),
  }
}
