import type { TimerId } from '../../../browser/platform.ts'
import type { PageContext } from '../vocabulary/types.ts'
import type { FeatureParts } from './feature-parts.ts'
import { minimized } from './page-context.ts'

/** Delay before a page is reported. Single-page applications change the URL before the title. */
const delayMs = 400
/**
 * Minimum time between two reports. If the page changes more often, only the latest page is
 * reported.
 */
const restMs = 2_000

/**
 * Reports the visitor's current page. Skips pages that the visitor leaves at once, and pages that
 * were already reported. Failed reports are not retried.
 */
export function createPageReports({ api, grants, pageContext, platform }: FeatureParts, isAllowed: () => boolean) {
  const { clock } = platform
  let timer: TimerId
  let given: PageContext | undefined
  let reported = ''
  let lastAtMs = Number.NEGATIVE_INFINITY

  return {
    update(page?: PageContext) {
      given = page
      clock.clearTimeout(timer)
      timer = clock.setTimeout(send, Math.max(delayMs, lastAtMs + restMs - clock.now()))
    },

    stop: () => clock.clearTimeout(timer),
  }

  function send() {
    const page = given ? minimized(given) : pageContext()
    if (!page || !isAllowed() || keyOf(page) === reported) return
    reported = keyOf(page)
    lastAtMs = clock.now()
    grants()((grant) => api.reportPage(page, grant)).catch(() => {
      reported = ''
    })
  }
}

/** Returns a key that is equal for equal pages. The key ignores the window size. */
function keyOf(page: PageContext | undefined): string {
  return page ? JSON.stringify([page.url, page.title]) : ''
}
