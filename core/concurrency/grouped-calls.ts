export interface GroupedCallsOptions {
  maxItems?: number
  maxInFlight?: number
}

/**
 * Combines items into calls. Items that arrive during a call form the next one, without a timer.
 * Each item has its own outcome. Errors: a failed call fails each of its items.
 */
export function createGroupedCalls<Item, Result>(
  callMany: (items: Item[]) => Promise<PromiseSettledResult<Result>[]>,
  { maxItems = 200, maxInFlight = 2 }: GroupedCallsOptions = {},
): (item: Item) => Promise<Result> {
  let waiting: { item: Item; outcome: PromiseWithResolvers<Result> }[] = []
  let inFlight = 0

  function start() {
    while (inFlight < maxInFlight && waiting.length > 0) {
      const group = waiting.slice(0, maxItems)
      waiting = waiting.slice(maxItems)
      inFlight += 1
      void call(group)
    }
  }

  async function call(group: typeof waiting) {
    try {
      const results = await callMany(group.map(({ item }) => item))
      for (const [index, { outcome }] of group.entries()) {
        const result = results[index]
        if (result?.status === 'fulfilled') outcome.resolve(result.value)
        else outcome.reject(result?.reason)
      }
    } catch (error) {
      for (const { outcome } of group) outcome.reject(error)
    } finally {
      inFlight -= 1
      start()
    }
  }

  return (item) => {
    const outcome = Promise.withResolvers<Result>()
    waiting.push({ item, outcome })
    // Wait until the end of this turn, so that the call has all items of the turn.
    queueMicrotask(start)
    return outcome.promise
  }
}
