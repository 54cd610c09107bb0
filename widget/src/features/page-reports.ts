import type { TimerId } from '../../../browser/platform.ts'
import type { PageContext } from '../vocabulary/types.ts'
import type { FeatureParts } from './feature-parts.ts'

/** Delay before a page is reported. Single-page applications change the URL before the title. */
const delayMs = 400
/** Minimum time between two reports. If the page changes more often, only the latest page is reported. */
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
    grants()((grant) => api.report('/context/page', page, grant)).catch(() => {
      reported = ''
    })
  }
}

/** Returns a key that is equal for equal pages, whatever the size of the window. */
const keyOf = ({ url, title }: PageContext) => JSON.stringify([url, title])

/**
 * Maximum length of a title in UTF-16 code units. The service accepts 256 code points, each of
 * which has up to two code units.
 */
const longestTitle = 512

/** Returns the page without the URL's query and fragment. Reduces the referrer to its origin. */
export function minimized(page: PageContext | undefined): PageContext | undefined {
  if (!page || !URL.canParse(page.url)) return undefined
  const { protocol, origin, pathname } = new URL(page.url)
  if (protocol !== 'https:' && protocol !== 'http:') return undefined
  const referrer = page.referrer && URL.canParse(page.referrer) ? new URL(page.referrer).origin : 'null'
  return {
    url: (origin + pathname).slice(0, 2_048),
    ...(page.title && { title: page.title.slice(0, longestTitle) }),
    ...(referrer !== 'null' && { referrer }),
    ...(page.viewport && { viewport: page.viewport }),
  }
}
