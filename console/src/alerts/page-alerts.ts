import { effect, type ReadonlySignal, signal } from '@preact/signals'
import { createChime } from '../../../browser/chat/chime.ts'
import type { Lifecycle, LifecycleSignal } from '../../../browser/platform.ts'
import type { Inbox } from '../inbox/inbox.ts'
import type { Router } from '../router.ts'
import { localStore } from '../storages.ts'
import { createAlertedMessages } from './alerted-messages.ts'
import { type Alert, createAlerts } from './alerts.ts'
import { startAttention } from './attention.ts'
import { createTabFocus } from './tab-focus.ts'

interface PageAlertDeps {
  inbox: Inbox
  router: Router
  owner: string
  /** Reports whether the operator looks at the console. Absent for sessions without an account. */
  report?: ((looking: boolean) => Promise<unknown>) | undefined
}

/** Creates the alerts of this page. Returns the alerts and a function that stops them. */
export function createPageAlerts({ inbox, router, owner, report }: PageAlertDeps) {
  const focus = createTabFocus(navigator.locks, document, window)
  const chime = createChime(0.18)

  function notify({ conversationId, title, text }: Alert) {
    const notification = new Notification(title, { body: text, tag: conversationId, icon: '/console/favicon.svg' })
    notification.onclick = () => {
      window.focus()
      router.go(router.inFilter({ conversationId }))
      notification.close()
    }
  }

  const isSupported = 'Notification' in window
  const alerts = createAlerts({
    conversations: inbox.conversations,
    isReady: inbox.isListed,
    storage: localStore,
    messages: createAlertedMessages(() => indexedDB, owner, Date.now),
    focus,
    notify,
    playSound: chime.play,
    requestPermission: async () => (canNotify() ? Notification.requestPermission() : 'unsupported'),
    permission: () => (isSupported ? Notification.permission : 'denied'),
  })
  window.addEventListener('storage', alerts.onStorage)
  const stopAttention = report && startAttention(report, focus)
  // The service worker opens the conversation of a notification.
  const onOpen = ({ data }: MessageEvent<{ path: string }>) => router.go(data.path)
  navigator.serviceWorker?.addEventListener('message', onOpen)
  const stopRoute = effect(() => {
    const route = router.route.value
    focus.show(route.view === 'conversation' ? route.conversationId : undefined)
  })

  return {
    alerts,
    stop() {
      window.removeEventListener('storage', alerts.onStorage)
      stopAttention?.()
      navigator.serviceWorker?.removeEventListener('message', onOpen)
      stopRoute()
      alerts.stop()
      focus.stop()
      chime.dispose()
    },
  }
}

/** Returns false on phones whose browser has notifications of service workers only. */
function canNotify(): boolean {
  try {
    // Without permission, nothing is shown.
    const shown = new Notification('Notifications are on', { tag: 'service.console', silent: true })
    shown.close()
    return true
  } catch {
    return false
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
  let release = () => {}
  const stop = effect(() => {
    if (!isEnabled.value || !locks) return
    const waiting = new AbortController()
    const hold = () =>
      new Promise<void>((resolve) => {
        isListener.value = true
        release = resolve
      })
    locks.request('service.console.listener', { signal: waiting.signal }, hold).catch(() => {})
    return () => {
      waiting.abort()
      release()
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
