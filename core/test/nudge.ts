import type { Nudge, PassedEnds } from '../wakeups/wakeup-store.ts'

/** Creates a nudge that the cores of one test share, so that they need not poll the database for wake-ups. */
export function createTestNudge(): Nudge {
  let announced = 0
  let waiting: (() => void)[] = []
  const handlers: ((ends: PassedEnds) => void)[] = []
  return {
    pass(ends) {
      for (const handle of handlers) handle(ends)
    },
    onPassed: (handle) => void handlers.push(handle),
    announce() {
      announced += 1
      for (const resolve of waiting.splice(0)) resolve()
    },
    count: () => announced,
    after(known, atMostMs) {
      if (announced !== known) return Promise.resolve()
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, atMostMs)
      waiting.push(resolve)
      return promise.finally(() => {
        clearTimeout(timer)
        waiting = waiting.filter((one) => one !== resolve)
      })
    },
  }
}
