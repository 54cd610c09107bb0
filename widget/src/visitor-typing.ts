import { toWidgetError } from './errors.ts'
import type { Clock } from './platform.ts'

/** The service expires a typing report after 8 s, so it is repeated while the visitor types. */
const renewAfterMs = 5_000
const lastsMs = 8_000
/** Minimum time between two reports. */
const restMs = 1_000
/** After a failure there is silence for so long: typing is not worth a retry. */
const mutedMs = 15_000

export interface VisitorTypingDeps {
  clock: Pick<Clock, 'now'>
  isAllowed(): boolean
  tell(state: 'started' | 'stopped'): Promise<void>
}

export type VisitorTyping = ReturnType<typeof createVisitorTyping>

/** Sends typing reports: throttled, in order, and without retries. */
export function createVisitorTyping({ clock, isAllowed, tell }: VisitorTypingDeps) {
  let wanted: 'started' | 'stopped' = 'stopped'
  let startedAtMs = Number.NEGATIVE_INFINITY
  let mutedUntilMs = 0
  let isTold = false
  let telling = false

  return {
    /** With each change of the text. */
    writes() {
      const sinceMs = clock.now() - startedAtMs
      if (!isAllowed() || clock.now() < mutedUntilMs) return
      if (wanted === 'started' ? sinceMs < renewAfterMs : sinceMs < restMs) return
      wanted = 'started'
      startedAtMs = clock.now()
      isTold = false
      void run()
    },

    /** Sent, emptied, left or closed. */
    stops() {
      if (wanted === 'stopped') return
      wanted = 'stopped'
      // The service has ended it by itself, or there never was a start that came through.
      isTold = clock.now() - startedAtMs >= lastsMs || clock.now() < mutedUntilMs
      void run()
    },

    /** Forgets everything: another session begins. */
    reset() {
      wanted = 'stopped'
      isTold = true
      startedAtMs = Number.NEGATIVE_INFINITY
      mutedUntilMs = 0
    },
  }

  /** One request at a time, so that a stop never overtakes its start. */
  async function run() {
    if (telling) return
    telling = true
    while (!isTold) {
      isTold = true
      try {
        await tell(wanted)
      } catch (error) {
        const { retryAfterMs, retryable } = toWidgetError(error)
        mutedUntilMs = clock.now() + (retryable ? Math.max(mutedMs, retryAfterMs ?? 0) : Number.POSITIVE_INFINITY)
        isTold = true
      }
    }
    telling = false
  }
}
