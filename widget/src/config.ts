import type { Api } from './api.ts'
import { createPause } from './pause.ts'
import type { Platform } from './platform.ts'
import { retrying } from './retrying.ts'
import type { WidgetConfig } from './types.ts'

const range = { minMs: 500, maxMs: 5_000 }
const attempts = 3

/**
 * The installation's public configuration, or undefined where it cannot be had: the chat then works with the package's own
 * defaults, and whether the installation is good at all is decided where the session is created.
 */
export function loadConfig(
  api: Api,
  siteKey: string,
  { clock, random }: Pick<Platform, 'clock' | 'random'>,
): Promise<WidgetConfig | undefined> {
  return retrying(() => api.config(siteKey), {
    pause: createPause(clock),
    random,
    range,
    isEnough: ({ retryAfterMs = 0 }, attempt) => attempt + 1 === attempts || retryAfterMs > range.maxMs,
  }).catch(() => undefined)
}
