import { setTimeout as delay } from 'node:timers/promises'

/** Polls until the result is truthy and returns it. Throws after 60 s. */
export async function until<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const deadline = performance.now() + 60_000
  for (;;) {
    const found = await look()
    if (found) return found
    if (performance.now() > deadline) throw new Error(`timed out after 60 s waiting for ${what}`)
    await delay(10)
  }
}
