/**
 * Loads values by key in batches. Keys requested during a load form the next batch, without a
 * timer. Errors: a failed load fails each of its keys.
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
      // Wait until the end of this turn, so that the batch has all keys of the turn.
      queueMicrotask(start)
    }
    return entry.promise
  }
}
