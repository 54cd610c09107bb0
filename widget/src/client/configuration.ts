import { createPause, onceMore } from '../../../browser/pause.ts'
import type { Platform, TimerId } from '../../../browser/platform.ts'
import type { Api } from '../transport/api.ts'
import { retrying } from '../transport/retrying.ts'
import type { Emitter } from '../vocabulary/events.ts'
import type { Availability, StreamEvent, WidgetConfig } from '../vocabulary/types.ts'

/** Range of the delay before a retry. */
const range = { minMs: 500, maxMs: 30_000 }
/** After so many failures, or if the service asks for a longer wait, the chat starts with defaults. */
const maxFailures = 3
const maxWaitMs = 5_000
/** Time for which a browser may cache the configuration. */
const cachedMs = 60_000

interface ConfigurationDeps {
  api: Pick<Api, 'config'>
  platform: Pick<Platform, 'clock' | 'random'>
  emitter: Emitter
  siteKey: string
  isRunning(): boolean
}

/** Loads the configuration, and keeps that of an open page up to date. */
export function createConfiguration({ api, platform, emitter, siteKey, isRunning }: ConfigurationDeps) {
  const { clock, random } = platform
  const pause = createPause(clock)
  let config: WidgetConfig | undefined
  let loading: Promise<void> | undefined
  /** Number of received changes. A response does not overwrite a change that came after its request. */
  let changes = 0
  /** Time after which the configuration may differ from that of the service. */
  let staleAtMs = 0
  let timer: TimerId
  emitter.on('connection.changed', ({ state }) => {
    if (state === 'online') {
      pause.hurry()
      // An event may have been missed while the stream was closed.
      if (clock.now() >= staleAtMs) void refresh()
    } else if (state === 'ended' || state === 'idle') clock.clearTimeout(timer)
  })

  /** Fetches the configuration again, past the cache. A failure leaves the current one in use. */
  const refresh = onceMore(async () => {
    const before = changes
    staleAtMs = clock.now() + cachedMs
    const fresh = config && (await api.config(siteKey, 'no-cache').catch(() => undefined))
    if (!fresh) return
    const next = { ...config, ...fresh, ...(changes !== before && { availability: config!.availability }) }
    if (JSON.stringify(next) !== JSON.stringify(config)) tell(Object.assign(config!, next))
  })

  return {
    current: () => config,

    /**
     * Loads the configuration, and retries until that succeeds or the client stops. Resolves when it is
     * loaded, or when the chat starts with defaults instead.
     */
    load(): Promise<void> {
      staleAtMs = clock.now() + cachedMs
      // The loaded configuration may come from the cache, and later changes may have been missed.
      clock.clearTimeout(timer)
      timer = clock.setTimeout(refresh, cachedMs)
      loading ??= new Promise((resolve) => {
        retrying(() => api.config(siteKey), {
          pause,
          random,
          range,
          isEnough({ retryAfterMs = 0 }, attempt) {
            if (attempt + 1 >= maxFailures || retryAfterMs > maxWaitMs) resolve()
            return !isRunning()
          },
        })
          .then(tell, () => {
            loading = undefined
          })
          .then(resolve)
      })
      return loading
    },

    refresh,

    handleEvent({ type, data }: StreamEvent) {
      if (type !== 'availability.changed' || !config || typeof data.online !== 'boolean') return
      changes += 1
      config.availability = data as unknown as Availability
      emitter.emit('availability.changed', config.availability)
      tell(config)
    },
  }

  function tell(loaded: WidgetConfig) {
    config = loaded
    emitter.emit('config.loaded', { config })
  }
}
