import { longestWaitMs } from '../../../browser/pause.ts'
import type { TimerId } from '../../../browser/platform.ts'
import { toWidgetError } from '../vocabulary/errors.ts'
import type { FeatureParts } from './feature-parts.ts'

/** Interval of the reports while the visitor sees the chat. The service expires a report after 4 s. */
const everyMs = 2_000
/** Time after which a failed report is repeated. */
const retryMs = 1_000
/** Time without reports after the service has refused a report. */
const mutedMs = 60_000

/**
 * Reports whether the visitor sees the chat: `here` repeatedly while the chat is shown on a visible
 * page, then `away` once.
 */
export function createPresenceReports({ api, grants, platform }: FeatureParts, isAllowed: () => boolean) {
  const { clock, lifecycle } = platform
  const tab = platform.newId()
  let isShown = false
  let hasLeft = false
  let reported: 'here' | 'away' = 'away'
  let isReporting = false
  let timer: TimerId

  lifecycle.subscribe((signal) => {
    // A page in the back/forward cache must have no open request.
    if (signal === 'pagehide') hasLeft = true
    if (signal === 'pageshow') hasLeft = false
    void update()
  })

  return {
    setShown(next: boolean) {
      isShown = next
      void update()
    },

    update,
  }

  async function update() {
    const state = isShown && !lifecycle.isHidden?.() ? 'here' : 'away'
    if (isReporting || hasLeft || !isAllowed() || state === reported) return
    clock.clearTimeout(timer)
    isReporting = true
    let pauseMs = everyMs
    await grants()((grant) => api.report('/presence', { tab, state }, grant)).catch((error) => {
      const { retryable, retryAfterMs = 0 } = toWidgetError(error)
      pauseMs = Math.min(longestWaitMs, Math.max(retryAfterMs, retryable ? retryMs : mutedMs))
    })
    reported = state
    isReporting = false
    timer = clock.setTimeout(() => {
      // The last report has expired, so the service already counts the visitor as away.
      reported = 'away'
      void update()
    }, pauseMs)
    if (pauseMs <= everyMs) void update()
  }
}
