import type { Api } from './api.ts'
import { backoffDelay } from './backoff.ts'
import { toWidgetError } from './errors.ts'
import { createPause } from './pause.ts'
import type { Platform } from './platform.ts'
import type { WidgetConfig } from './types.ts'

const retryRange = { minMs: 500, maxMs: 5_000 }
const attempts = 3

/**
 * The installation's public configuration, or undefined where it cannot be had: the chat then works with the package's own
 * defaults, and whether the installation is good at all is decided where the session is created.
 */
export async function loadConfig(
  api: Api,
  siteKey: string,
  { clock, random }: Pick<Platform, 'clock' | 'random'>,
): Promise<WidgetConfig | undefined> {
  const pause = createPause(clock)
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    try {
      return await api.config(siteKey)
    } catch (error) {
      const { retryable, retryAfterMs } = toWidgetError(error)
      if (!retryable || attempt + 1 === attempts || (retryAfterMs ?? 0) > retryRange.maxMs) return undefined
      await pause.wait(backoffDelay(attempt, retryRange, random), retryAfterMs)
    }
  }
  return undefined
}
