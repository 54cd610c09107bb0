/**
 * Returns a function that runs `task`, at most once at a time. A call while it runs makes it run once
 * more afterwards, so what has changed in the meantime is not missed. The promise resolves after the
 * last run. `task` must not reject.
 */
export function onceMore(task: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let isWanted = false

  async function run() {
    while (isWanted) {
      isWanted = false
      await task()
    }
    running = undefined
  }

  return () => {
    isWanted = true
    running ??= run()
    return running
  }
}
