/**
 * Returns a function that runs `task`. Two runs never overlap. If the function is called during a run,
 * the task runs once more afterwards, so it misses no change. The promise resolves after the last run.
 * `task` must not reject.
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
