import type { Api } from './api.ts'
import { createPause } from './pause.ts'
import type { Platform } from './platform.ts'
import { retrying } from './retrying.ts'
import type { WidgetConfig } from './types.ts'

/** Between two attempts. */
const range = { minMs: 500, maxMs: 30_000 }
/** The chat begins without the configuration after so many failures, or if the service asks for a longer wait. */
const maxFailures = 3
const maxWaitMs = 5_000

export interface ConfigLoaderDeps {
  api: Pick<Api, 'config'>
  platform: Pick<Platform, 'clock' | 'random'>
  siteKey: string
  isRunning(): boolean
  onLoaded(config: WidgetConfig): Promise<void>
}

/** Fetches the installation's configuration, and retries until it has it or the client stops. */
export function createConfigLoader({ api, platform: { clock, random }, siteKey, ...deps }: ConfigLoaderDeps) {
  const pause = createPause(clock)
  let loading: Promise<void> | undefined

  return {
    /** Retries now: the network works again. */
    hurry: pause.hurry,

    /** Resolves with the configuration, or earlier if the chat must begin with the defaults. */
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
