import type { Api } from './api.ts'
import type { Emitter } from './events.ts'
import type { Platform } from './platform.ts'
import type { Availability, StreamEvent, WidgetConfig } from './types.ts'

/** Keeps the configuration of an open page up to date. */
export function createConfigRefresh(deps: {
  api: Pick<Api, 'exchange'>
  platform: Pick<Platform, 'fetch'>
  siteKey: string
  config(): WidgetConfig | undefined
  emitter: Emitter
}) {
  const { api, platform, siteKey, config, emitter } = deps
  let isRunning = false
  /** Number of announced changes. A response that was requested before a change is outdated. */
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

    /**
     * Fetches the configuration again, past the browser's cache. Emits `config.loaded` if it has
     * changed. Failures are ignored, because the next event that needs the configuration fetches it
     * again.
     */
    async refresh() {
      const shown = config()
      if (isRunning || !shown) return
      isRunning = true
      const before = changes
      try {
        const path = `/config/${encodeURIComponent(siteKey)}`
        const response = await api.exchange({ method: 'GET', path }, (url, init) =>
          platform.fetch(url, { ...init, cache: 'no-cache' }),
        )
        const fresh = await response.json()
        if (!fresh.capabilities) return
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
