import { computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { Lifecycle, LifecycleSignal } from '../../../browser/platform.ts'
import type { Api } from '../api.ts'
import type { Console } from '../console-context.ts'
import { language } from '../language.ts'
import { createAlerts, createTabFocus, type TabFocus } from './alerts.ts'

/**
 * The call that tells the service whether the operator looks at the console, and at which conversation. Its answer
 * names who else looks at that conversation. Sessions without an account have no such call.
 */
type Report = Api['operators']['reportAttention']

type PageAlertDeps = Pick<Console, 'inbox' | 'router'> & { owner: string; report?: Report | undefined }

/** Creates the alerts of this page. Returns the alerts and a function that stops them. */
export function createPageAlerts({ inbox, router, owner, report }: PageAlertDeps) {
  const focus = createTabFocus(navigator.locks, document, window)
  const alerts = createAlerts(inbox, owner, focus, (conversationId) => router.go(router.inFilter({ conversationId })))
  const stopped = new AbortController()
  window.addEventListener('storage', alerts.onStorage, stopped)
  const shown = computed(() => (router.route.value as { conversationId?: string }).conversationId ?? '')
  /** Names of the colleagues who look at the shown conversation. */
  const others = signal<readonly string[]>([])
  const stopAttention = report && startAttention(report, focus, shown, others)
  // The service worker opens the conversation of a notification.
  const onOpen = ({ data }: MessageEvent<{ path: string }>) => router.go(data.path)
  navigator.serviceWorker?.addEventListener('message', onOpen, stopped)
  const stopRoute = shown.subscribe(focus.show)

  return {
    alerts,
    others,
    stop() {
      stopped.abort()
      stopAttention?.()
      stopRoute()
      alerts.stop()
      focus.stop()
    },
  }
}

/**
 * Lifecycle for the inbox stream. Over HTTP/1.1, hidden tabs have no stream. While alerts are on,
 * one tab of the browser counts as visible, so that alerts arrive even if all tabs are hidden.
 */
export function listeningLifecycle(
  lifecycle: Lifecycle,
  isEnabled: ReadonlySignal<boolean>,
  locks: LockManager | undefined,
): { lifecycle: Lifecycle; stop: () => void } {
  const isListener = signal(false)
  const stop = effect(() => {
    if (!isEnabled.value || !locks) return
    const waiting = new AbortController()
    const released = Promise.withResolvers<void>()
    const hold = () => {
      isListener.value = true
      return released.promise
    }
    locks.request('service.console.listener', { signal: waiting.signal }, hold).catch(() => {})
    return () => {
      waiting.abort()
      released.resolve()
      isListener.value = false
    }
  })
  const subscribe: Lifecycle['subscribe'] = (listener) => {
    const pass = (signal: LifecycleSignal) => {
      if (signal !== 'hidden' || !isListener.peek()) listener(signal)
    }
    const stopPassing = lifecycle.subscribe(pass)
    const stopListening = effect(() => {
      if (isListener.value) queueMicrotask(() => listener('visible'))
    })
    return () => {
      stopPassing()
      stopListening()
    }
  }
  return {
    lifecycle: { ...lifecycle, isHidden: () => lifecycle.isHidden?.() === true && !isListener.peek(), subscribe },
    stop,
  }
}

/** The service counts a report for 40 seconds for colleagues, and for 90 seconds for pushes and mails. */
const everyMs = 15_000
/** Time in milliseconds after a report in which none is sent. Two reports are at most `everyMs` and this time apart. */
const recentMs = 5_000
/** Time in milliseconds in which another tab of the console may get the focus. */
const otherTabMs = 1_000

/** Reports that the operator looks at this page. Colleagues see it, and no push messages or mails are sent. */
function startAttention(
  report: Report,
  focus: Pick<TabFocus, 'query'>,
  shown: ReadonlySignal<string>,
  others: Signal<readonly string[]>,
) {
  let reportedAt = Number.NEGATIVE_INFINITY
  let timeout: ReturnType<typeof setTimeout> | undefined
  // If a report is lost, the operator is told once too often, or 90 seconds late.
  async function send(looking: boolean) {
    const conversationId = shown.peek()
    const found = await report({ looking, conversationId, language }).catch(() => undefined)
    if (conversationId === shown.peek()) others.value = found?.others ?? []
  }

  function check() {
    if (document.hidden || !document.hasFocus() || Date.now() - reportedAt < recentMs) return
    reportedAt = Date.now()
    void send(true)
  }

  function showOther() {
    others.value = []
    reportedAt = Number.NEGATIVE_INFINITY
    check()
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
  const stopped = new AbortController()
  window.addEventListener('focus', check, stopped)
  document.addEventListener('visibilitychange', onVisibility, stopped)
  const stopShown = shown.subscribe(showOther)
  return () => {
    stopShown()
    clearInterval(interval)
    clearTimeout(timeout)
    stopped.abort()
  }
}
