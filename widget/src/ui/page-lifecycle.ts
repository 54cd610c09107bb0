import type { Lifecycle, LifecycleSignal } from '../platform.ts'

/** The lifecycle of the page the widget stands on. */
export const pageLifecycle: Lifecycle = {
  isOnline: () => navigator.onLine !== false,
  isHidden: () => document.hidden,
  subscribe(listener) {
    const controller = new AbortController()
    const { signal } = controller
    const pass = (target: EventTarget, name: string, told = () => name) =>
      target.addEventListener(name, () => listener(told() as LifecycleSignal), { signal })
    for (const name of ['online', 'offline', 'pagehide', 'pageshow']) pass(window, name)
    pass(document, 'visibilitychange', () => (document.hidden ? 'hidden' : 'visible'))
    // A frozen page rests as one that is kept for the back button does.
    pass(document, 'freeze', () => 'pagehide')
    pass(document, 'resume', () => 'pageshow')
    return () => controller.abort()
  },
}
