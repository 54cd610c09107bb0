import type { Lifecycle, LifecycleSignal } from './platform.ts'

/**
 * Reports when the page is hidden, shown, left or restored, and when the network is lost or works
 * again.
 */
export const pageLifecycle: Lifecycle = {
  isOnline: () => navigator.onLine !== false,
  isHidden: () => document.hidden,
  subscribe(listener) {
    const controller = new AbortController()
    const { signal } = controller
    const pass = (target: EventTarget, name: string, signalOf = () => name) =>
      target.addEventListener(name, () => listener(signalOf() as LifecycleSignal), { signal })
    for (const name of ['online', 'offline', 'pagehide', 'pageshow']) pass(window, name)
    pass(document, 'visibilitychange', () => (document.hidden ? 'hidden' : 'visible'))
    // After a sleep, some systems focus the window without changing the page's visibility.
    pass(window, 'focus', () => 'visible')
    // A page that is frozen must close its connections, like a page in the back/forward cache.
    pass(document, 'freeze', () => 'pagehide')
    pass(document, 'resume', () => 'pageshow')
    return () => controller.abort()
  },
}
