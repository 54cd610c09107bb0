import { setTimeout as delay } from 'node:timers/promises'

/** Longest default interval in milliseconds, so that long waits take little processor time. */
const maxIntervalMs = 50

/**
 * Calls `check` until its result is truthy, and returns the result. Throws after 60 s. The interval
 * grows from `everyMs` to 50 ms. If `check` calls a rate-limited route, pass a longer interval.
 */
export async function until<T>(what: string, check: () => T | Promise<T>, everyMs = 10): Promise<NonNullable<T>> {
  const deadline = performance.now() + 60_000
  for (let interval = everyMs; ; interval = Math.max(everyMs, Math.min(interval * 1.1, maxIntervalMs))) {
    const found = await check()
    if (found) return found
    if (performance.now() > deadline) throw new Error(`timed out after 60 s waiting for ${what}`)
    await delay(interval)
  }
}

/** Resolves or rejects like the promise. Throws after 60 s. */
export async function untilSettled<T>(what: string, promise: Promise<T>): Promise<T> {
  let isSettled = false
  void Promise.allSettled([promise]).then(() => {
    isSettled = true
  })
  await until(what, () => isSettled)
  return promise
}
