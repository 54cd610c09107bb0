import { longestWaitMs } from '../../../browser/pause.ts'
import { toWidgetError } from '../vocabulary/errors.ts'
import type { FeatureParts } from './feature-parts.ts'

/** Time after which a typing report is repeated while the visitor types. The service expires a report after 8 s. */
const renewAfterMs = 5_000
const lastsMs = 8_000
/** Minimum time between a report that typing has started and the next such report. */
const restMs = 1_000
/** Time without reports after a failed report, or after a refused one. Typing reports are not retried. */
const mutedMs = { failed: 15_000, refused: 300_000 }

/**
 * Sends reports that the visitor has started or stopped typing. Reports are throttled, sent in
 * order and never retried.
 */
export function createVisitorTyping({ api, grants, platform: { clock } }: FeatureParts, isAllowed: () => boolean) {
  let wanted: 'started' | 'stopped' = 'stopped'
  let startedAtMs = Number.NEGATIVE_INFINITY
  let mutedUntilMs = 0
  let isReported = false
  let isReporting = false

  return {
    writes() {
      const sinceMs = clock.now() - startedAtMs
      if (!isAllowed() || clock.now() < mutedUntilMs) return
      if (wanted === 'started' ? sinceMs < renewAfterMs : sinceMs < restMs) return
      wanted = 'started'
      startedAtMs = clock.now()
      isReported = false
      void run()
    },

    stops() {
      if (wanted === 'stopped') return
      wanted = 'stopped'
      // If the last report has expired or failed, the service does not show the visitor as typing,
      // so no stop is reported.
      isReported = clock.now() - startedAtMs >= lastsMs || clock.now() < mutedUntilMs
      void run()
    },

    /** Clears the state, because another session starts. */
    reset() {
      wanted = 'stopped'
      isReported = true
      startedAtMs = Number.NEGATIVE_INFINITY
      mutedUntilMs = 0
    },
  }

  /** Sends one report at a time, so that the reports reach the service in order. */
  async function run() {
    if (isReporting) return
    isReporting = true
    while (!isReported) {
      isReported = true
      const state = wanted
      try {
        await grants()((grant) => api.report('/typing', { state }, grant))
      } catch (error) {
        const { retryAfterMs = 0, retryable } = toWidgetError(error)
        const pauseMs = retryable ? Math.min(longestWaitMs, Math.max(mutedMs.failed, retryAfterMs)) : mutedMs.refused
        mutedUntilMs = clock.now() + pauseMs
        isReported = true
      }
    }
    isReporting = false
  }
}
