/**
 * Calls `callMany` with batches. Items that arrive while `maxInFlight` calls run form the next batch, without a
 * timer. If a call fails, each of its items fails.
 */
export function createBatcher<Item, Result>(
  callMany: (items: Item[]) => Promise<PromiseSettledResult<Result>[]>,
  options: {
    maxInFlight?: number
    /** Returns how many of the queued items the next call takes. Default: 200. */
    sizeOf?: (items: readonly Item[]) => number
    /** Delays a call, so that items of one event loop turn are batched. Default: a microtask. */
    defer?: (start: () => void, inFlight: number) => void
    onWaiting?: (waiting: number) => void
  } = {},
) {
  const { maxInFlight = 2, sizeOf = () => 200, defer = queueMicrotask, onWaiting = () => {} } = options
  let queue: Item[] = []
  let outcomes: PromiseWithResolvers<Result>[] = []
  let inFlight = 0

  function start() {
    while (inFlight < maxInFlight && queue.length > 0) {
      const size = sizeOf(queue)
      inFlight += 1
      void call(queue.slice(0, size), outcomes.slice(0, size))
      queue = queue.slice(size)
      outcomes = outcomes.slice(size)
      onWaiting(queue.length)
    }
  }

  async function call(items: Item[], waiting: typeof outcomes) {
    try {
      const results = await callMany(items)
      for (const [index, outcome] of waiting.entries()) {
        const result = results[index]
        if (result?.status === 'fulfilled') outcome.resolve(result.value)
        else outcome.reject(result?.reason)
      }
    } catch (error) {
      for (const { reject } of waiting) reject(error)
    } finally {
      inFlight -= 1
      start()
    }
  }

  return {
    add(item: Item) {
      const outcome = Promise.withResolvers<Result>()
      queue.push(item)
      outcomes.push(outcome)
      onWaiting(queue.length)
      if (queue.length === 1) defer(start, inFlight)
      return outcome.promise
    },
    waiting: () => queue.length,
  }
}

/** Returns the outcomes of a call that has a result for each item. */
export const fulfilled = <T>(values: T[]) => values.map((value) => ({ status: 'fulfilled' as const, value }))

/**
 * Creates a function that loads a value by its key, in batches. A key that is requested twice before its batch
 * starts is loaded once.
 */
export function createBatchLoader<V>(
  loadMany: (keys: string[]) => Promise<Map<string, V>>,
  { maxKeys = 500 }: { maxKeys?: number } = {},
): (key: string) => Promise<V | undefined> {
  const waiting = new Map<string, Promise<V | undefined>>()
  const batcher = createBatcher<string, V | undefined>(
    async (keys) => {
      for (const key of keys) waiting.delete(key)
      const found = await loadMany(keys)
      return fulfilled(keys.map((key) => found.get(key)))
    },
    { sizeOf: () => maxKeys },
  )
  return (key) => {
    const value = waiting.get(key) ?? batcher.add(key)
    waiting.set(key, value)
    return value
  }
}

export function byKey<V>(values: V[], keyOf: (value: V) => string): Map<string, V> {
  return new Map(values.map((value) => [keyOf(value), value]))
}

/** Yields the items in parts of at most this size. */
export function* slicesOf<T>(items: T[], size: number) {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}
