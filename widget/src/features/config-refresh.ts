import type { Availability, StreamEvent } from '../vocabulary/types.ts'
import type { FeaturesDeps } from './feature-parts.ts'

/** Keeps the configuration of an open page up to date. */
export function createConfigRefresh({ api, siteKey, config, emitter }: Omit<FeaturesDeps, 'consented'>) {
  let isRunning = false
  /** Number of received changes. A response does not overwrite a change that came after its request. */
  let changes = 0

  return {
    /** Handles the data of the event `availability.changed`. */
    takeAvailability(data: StreamEvent['data']) {
      const shown = config()
      if (!shown || typeof data.online !== 'boolean') return
      changes += 1
      shown.availability = data as unknown as Availability
      emitter.emit('availability.changed', shown.availability)
      emitter.emit('config.loaded', { config: shown })
    },

    /** Fetches the configuration again, past the cache. A failure leaves the current one in use. */
    async refresh() {
      const shown = config()
      if (isRunning || !shown) return
      isRunning = true
      const before = changes
      try {
        const fresh = await api.config(siteKey, 'no-cache')
        const next = { ...shown, ...fresh, ...(changes !== before && { availability: shown.availability }) }
        if (JSON.stringify(next) === JSON.stringify(shown)) return
        emitter.emit('config.loaded', { config: Object.assign(shown, next) })
      } catch {
      } finally {
        isRunning = false
      }
    },
  }
}
