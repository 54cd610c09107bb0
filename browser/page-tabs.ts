import { pageLifecycle } from './page-lifecycle.ts'
import type { Platform, Tabs } from './platform.ts'

/** Coordinates the tabs of this page's origin. Resource Timing says whether the service uses HTTP/2. */
export function createPageTabs(serviceUrl: string): Tabs {
  const { origin } = new URL(serviceUrl, location.href)
  let isMultiplexed = false
  const note = (entries: PerformanceEntryList) => {
    for (const { name, nextHopProtocol } of entries as PerformanceResourceTiming[])
      if (nextHopProtocol && name.startsWith(`${origin}/`)) isMultiplexed = /^h\d/.test(nextHopProtocol)
  }
  const observer = new PerformanceObserver((list) => note(list.getEntries()))
  observer.observe({ type: 'resource', buffered: true })

  return {
    isMultiplexed() {
      note(observer.takeRecords())
      return isMultiplexed
    },
    waitForSlot,
  }
}

/** Returns the parts of a platform that need a browser; none outside of one. */
export function pagePlatform(serviceUrl: string): Partial<Platform> {
  return typeof document === 'undefined' ? {} : { lifecycle: pageLifecycle, tabs: createPageTabs(serviceUrl) }
}

/** Waits for a slot: a lock, which the browser releases if the tab is closed or crashes. */
export const waitForSlot: Tabs['waitForSlot'] = (name, count, onGranted, onLost) => {
  const { locks } = navigator
  if (!locks) return undefined
  const waiting = new AbortController()
  const { signal } = waiting
  let isOver = false
  let release: (() => void) | undefined

  function request(index: number, options: LockOptions) {
    let isHeld = false
    const hold = () => {
      if (isOver || release) return undefined
      isHeld = true
      waiting.abort()
      return new Promise<void>((resolve) => {
        release = resolve
        onGranted()
      })
    }
    locks.request(`${name}.${index}`, options, hold).catch(() => {
      if (isOver) return
      if (isHeld) return onLost()
      if (signal.aborted) return
      // The browser forbids locks on this page, so the stream opens without a slot.
      waiting.abort()
      onGranted()
    })
  }

  for (let index = 0; index < count; index += 1) request(index, { signal })
  return {
    async isWanted() {
      const found = await locks.query().catch(() => undefined)
      return found?.pending?.some((lock) => lock.name!.startsWith(`${name}.`)) === true
    },
    steal: () => request(Math.floor(Math.random() * count), { steal: true }),
    release() {
      isOver = true
      waiting.abort()
      release?.()
    },
  }
}
