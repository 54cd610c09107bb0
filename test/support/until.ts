import { setTimeout as delay } from 'node:timers/promises'

/** Looks again and again until there is something truthy, and gives it back. Errors: after 30 s, with what was waited for. */
export async function until<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const deadline = performance.now() + 60_000
  for (;;) {
    const found = await look()
    if (found) return found
    if (performance.now() > deadline) throw new Error(`waited 60 s in vain for ${what}`)
    await delay(10)
  }
}
