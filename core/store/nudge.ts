import { closeSync, type FSWatcher, openSync, watch, write } from 'node:fs'

/** Word between processes of one machine that there may be something new. It can come late or not at all. */
export interface Nudge {
  announce(): void
  /** How often anybody has announced, as far as it is known here. */
  heard(): number
  /** Resolves when more has been announced than was heard, at the latest after so many milliseconds. */
  after(heard: number, atMostMs: number): Promise<void>
  close(): void
}

/**
 * A nudge through a file's changes, which the system tells its watchers at once. Nothing of worth is in the file. Where
 * files cannot be watched it is a pause of some milliseconds.
 */
export function createFileNudge(path: string): Nudge {
  const file = openSync(path, 'a', 0o600)
  let heard = 0
  let waiting: (() => void)[] = []
  let watcher: FSWatcher | undefined
  let closed = false

  function wake() {
    heard += 1
    const woken = waiting
    waiting = []
    for (const resolve of woken) resolve()
  }

  try {
    watcher = watch(path, { persistent: false }, wake)
    watcher.on('error', () => {
      watcher?.close()
      watcher = undefined
    })
  } catch {
    // Too many watchers on this machine.
  }

  return {
    announce() {
      if (!closed) write(file, '.', 0, () => {})
    },

    heard: () => heard,

    after(known, atMostMs) {
      if (heard !== known || closed) return Promise.resolve()
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, watcher ? atMostMs : Math.min(atMostMs, unwatchedMs))
      waiting.push(resolve)
      return promise.finally(() => {
        clearTimeout(timer)
        waiting = waiting.filter((one) => one !== resolve)
      })
    },

    close() {
      if (closed) return
      closed = true
      watcher?.close()
      closeSync(file)
      wake()
    },
  }
}

const unwatchedMs = 10
