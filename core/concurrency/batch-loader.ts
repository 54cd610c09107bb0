/**
 * Loads values by key, many at once: what is asked for while a load is in flight is the next load, without a timer.
 * Errors: a load that fails fails each of its keys.
 */
export function createBatchLoader<V>(
  loadMany: (keys: string[]) => Promise<Map<string, V>>,
  { maxKeys = 500, maxInFlight = 2 }: { maxKeys?: number; maxInFlight?: number } = {},
): (key: string) => Promise<V | undefined> {
  let waiting = new Map<string, PromiseWithResolvers<V | undefined>>()
  let inFlight = 0

  function start() {
    while (inFlight < maxInFlight && waiting.size > 0) {
      const all = [...waiting]
      const batch = new Map(all.slice(0, maxKeys))
      waiting = new Map(all.slice(maxKeys))
      inFlight += 1
      void load(batch)
    }
  }

  async function load(batch: Map<string, PromiseWithResolvers<V | undefined>>) {
    try {
      const found = await loadMany([...batch.keys()])
      for (const [key, { resolve }] of batch) resolve(found.get(key))
    } catch (error) {
      for (const { reject } of batch.values()) reject(error)
    } finally {
      inFlight -= 1
      start()
    }
  }

  return (key) => {
    let entry = waiting.get(key)
    if (!entry) {
      entry = Promise.withResolvers()
      waiting.set(key, entry)
      // Let everybody who is about to ask ask first.
      queueMicrotask(start)
    }
    return entry.promise
  }
}
