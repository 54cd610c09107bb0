import type { Lifecycle, LifecycleSignal } from './platform.ts'

const listeners = new Set<(signal: LifecycleSignal) => void>()
const tell = (signal: LifecycleSignal) => {
  for (const listener of [...listeners]) listener(signal)
}
const pass = ({ type }: Event) => tell(type as LifecycleSignal)
const onVisibility = () => tell(document.hidden ? 'hidden' : 'visible')
// After a sleep, some systems focus the window without changing the page's visibility.
const onFocus = () => tell('visible')
// A page that is frozen must close its connections, like a page in the back/forward cache.
const onFreeze = () => tell('pagehide')
const onResume = () => tell('pageshow')

export const pageLifecycle: Lifecycle = {
  isOnline: () => navigator.onLine !== false,
  isHidden: () => document.hidden,
  subscribe(listener) {
    // The same function may subscribe twice.
    const own = (signal: LifecycleSignal) => listener(signal)
    listeners.add(own)
    // `document.open` removes all listeners, so each subscription adds them again. A browser adds the
    // same listener only once.
    for (const name of ['online', 'offline', 'pagehide', 'pageshow']) window.addEventListener(name, pass)
    document.addEventListener('visibilitychange', onVisibility)
    window.addEventListener('focus', onFocus)
    document.addEventListener('freeze', onFreeze)
    document.addEventListener('resume', onResume)
    return () => {
      listeners.delete(own)
    }
  },
}
