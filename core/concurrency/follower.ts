export type Follower = ReturnType<typeof createFollower>

/**
 * Runs all work that is repaired later, because no write spans two documents. The work that is left is
 * stored, as a position in a log or as a mark in a document. So a crash only delays it.
 *
 * @param read returns at most `batch` items after the stored position, or with the mark, oldest first
 * @param handle does the work of these items, then moves the position or removes their marks. It must
 *   accept items that were handled before. Throws if some must be read again. Returns false if another
 *   process has moved the position and goes on from there.
 * @param since returns the time since which an item waits. Default: there is no lag.
 * @param paced runs a batch, after a pause that spares other calls of the database
 */
export function createFollower<T>(options: {
  batch: number
  read: (limit: number) => Promise<T[]>
  handle: (items: T[]) => Promise<unknown>
  since?: (item: T) => Date
  now?: () => number
  paced?: <R>(work: () => Promise<R>) => Promise<R>
  signal?: AbortSignal
}) {
  const { batch, read, handle, since, now = Date.now, paced = (work) => work(), signal } = options
  let lagMs = 0
  return {
    /** Time in milliseconds for which the oldest item that this process has read waits. */
    lagMs: () => lagMs,
    /** Handles batches until none is left, another process goes on, or the signal aborts. */
    async run() {
      while (!signal?.aborted) {
        const items = await read(batch)
        lagMs = items[0] && since ? now() - since(items[0]).getTime() : 0
        if (items.length === 0 || (await paced(() => handle(items))) === false) return
        if (items.length < batch) {
          lagMs = 0
          return
        }
      }
    },
  }
}

/** Handles each item, also if one fails. Then throws the first failure. */
export async function handleEach<T>(items: T[], handle: (item: T) => Promise<unknown>): Promise<void> {
  const failures: unknown[] = []
  for (const item of items) await handle(item).catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}
