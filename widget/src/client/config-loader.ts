import { createPause } from '../../../browser/pause.ts'
import type { Platform } from '../../../browser/platform.ts'
import type { Api } from '../transport/api.ts'
import { retrying } from '../transport/retrying.ts'
import type { WidgetConfig } from '../vocabulary/types.ts'

/** Range of the delay before a retry. */
const range = { minMs: 500, maxMs: 30_000 }
/** After so many failures, or if the service asks for a longer wait, the chat starts with defaults. */
const maxFailures = 3
const maxWaitMs = 5_000

interface ConfigLoaderDeps {
  api: Pick<Api, 'config'>
  platform: Pick<Platform, 'clock' | 'random'>
  siteKey: string
  isRunning(): boolean
  onLoaded(config: WidgetConfig): void
}

/** Retries until the configuration is loaded or the client stops. */
export function createConfigLoader({ api, platform: { clock, random }, siteKey, ...deps }: ConfigLoaderDeps) {
  const pause = createPause(clock)
  let loading: Promise<void> | undefined

  return {
    /** Ends the wait before the next attempt. Call when the network works again. */
    hurry: pause.hurry,

    /** Resolves when the configuration is loaded, or when the chat starts with defaults instead. */
    load(): Promise<void> {
      loading ??= new Promise((resolve) => {
        retrying(() => api.config(siteKey), {
          pause,
          random,
          range,
          isEnough({ retryAfterMs = 0 }, attempt) {
            if (attempt + 1 >= maxFailures || retryAfterMs > maxWaitMs) resolve()
            return !deps.isRunning()
          },
        })
          .then(deps.onLoaded, () => {
            loading = undefined
          })
          .then(resolve)
      })
      return loading
    },
  }
}
