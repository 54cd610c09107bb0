import type { TabFocus } from './tab-focus.ts'

/** The service counts a report for 90 seconds. */
const everyMs = 60_000
/** Time in milliseconds after a report in which none is sent. Two reports are at most `everyMs` and this time apart. */
const recentMs = 25_000
/** Time in milliseconds in which another tab of the console may get the focus. */
const otherTabMs = 1_000

/**
 * Reports while the operator looks at this page, so that nothing is told by push or mail. Returns a
 * function that stops it.
 */
export function startAttention(report: (looking: boolean) => Promise<unknown>, focus: Pick<TabFocus, 'query'>) {
  let reportedAt = Number.NEGATIVE_INFINITY
  let timeout: ReturnType<typeof setTimeout> | undefined
  // If a report is lost, the operator is told once too often, or 90 seconds late.
  const send = (looking: boolean) => report(looking).catch(() => {})

  function check() {
    if (document.hidden || !document.hasFocus() || Date.now() - reportedAt < recentMs) return
    reportedAt = Date.now()
    void send(true)
  }

  function onVisibility() {
    clearTimeout(timeout)
    if (!document.hidden) return check()
    if (reportedAt === Number.NEGATIVE_INFINITY) return
    reportedAt = Number.NEGATIVE_INFINITY
    timeout = setTimeout(async () => {
      if (!(await focus.query('')).isFocused && document.hidden) void send(false)
    }, otherTabMs)
  }

  const interval = setInterval(check, everyMs)
  window.addEventListener('focus', check)
  document.addEventListener('visibilitychange', onVisibility)
  check()
  return () => {
    clearInterval(interval)
    clearTimeout(timeout)
    window.removeEventListener('focus', check)
    document.removeEventListener('visibilitychange', onVisibility)
  }
}
