import type { Lifecycle, LifecycleSignal } from '../platform.ts'

/** A frozen page rests as one that is kept for the back button does. */
const signals: Record<string, LifecycleSignal> = { freeze: 'pagehide', resume: 'pageshow' }

/** The lifecycle of the page the widget stands on. */
export const pageLifecycle: Lifecycle = {
  isOnline: () => navigator.onLine !== false,
  isVisible: () => document.visibilityState !== 'hidden',
  subscribe(listener) {
    const controller = new AbortController()
    const { signal } = controller
    const pass = ({ type }: Event) => listener(signals[type] ?? (type as LifecycleSignal))
    for (const name of ['online', 'offline', 'pagehide', 'pageshow']) window.addEventListener(name, pass, { signal })
    for (const name of ['freeze', 'resume']) document.addEventListener(name, pass, { signal })
    const onVisibility = () => listener(pageLifecycle.isVisible!() ? 'visible' : 'hidden')
    document.addEventListener('visibilitychange', onVisibility, { signal })
    return () => controller.abort()
  },
}
