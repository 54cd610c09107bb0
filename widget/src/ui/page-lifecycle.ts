import type { Lifecycle, LifecycleSignal } from '../platform.ts'

/** The lifecycle of the page the widget stands on. */
export const pageLifecycle: Lifecycle = {
  isOnline: () => navigator.onLine !== false,
  subscribe(listener) {
    const controller = new AbortController()
    const { signal } = controller
    const pass = (event: Event) => listener(event.type as LifecycleSignal)
    for (const name of ['online', 'offline', 'pagehide', 'pageshow']) window.addEventListener(name, pass, { signal })
    const onVisibility = () => {
      if (document.visibilityState === 'visible') listener('visible')
    }
    document.addEventListener('visibilitychange', onVisibility, { signal })
    return () => controller.abort()
  },
}
