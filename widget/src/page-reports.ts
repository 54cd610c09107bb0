import { minimized } from './page-context.ts'
import type { Clock, TimerId } from './platform.ts'
import type { PageContext } from './types.ts'

/** Single-page applications change the address first and the title a moment later. */
const settleMs = 400
/** At most one report in this time; the latest page wins. */
const restMs = 2_000

export interface PageReportsDeps {
  clock: Clock
  isAllowed(): boolean
  current(): PageContext | undefined
  report(page: PageContext): Promise<void>
}

export type PageReports = ReturnType<typeof createPageReports>

/** Tells the service which page the visitor is on: the latest, not each, and none twice. A report that fails is not repeated. */
export function createPageReports({ clock, isAllowed, current, report }: PageReportsDeps) {
  let timer: TimerId
  let given: PageContext | undefined
  let reported = ''
  let lastAtMs = Number.NEGATIVE_INFINITY

  return {
    update(page?: PageContext) {
      given = page
      clock.clearTimeout(timer)
      timer = clock.setTimeout(send, Math.max(settleMs, lastAtMs + restMs - clock.now()))
    },

    stop: () => clock.clearTimeout(timer),
  }

  function send() {
    const page = minimized(given ?? current())
    if (!page || !isAllowed() || keyOf(page) === reported) return
    reported = keyOf(page)
    lastAtMs = clock.now()
    report(page).catch(() => {
      reported = ''
    })
  }
}

/** The same page at another size of the window is no news. */
function keyOf(page: PageContext | undefined): string {
  return page ? JSON.stringify([page.url, page.title]) : ''
}
