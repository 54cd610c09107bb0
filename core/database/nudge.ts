import { randomBytes } from 'node:crypto'
import { closeSync, type FSWatcher, mkdirSync, openSync, readdirSync, rmSync, watch, write } from 'node:fs'
import { join } from 'node:path'

/**
 * Hints between the processes of this machine that there may be something new. A hint may be late
 * or lost.
 */
export interface Nudge {
  announce(): void
  /** How many hints of other processes were received. */
  count(): number
  /** Resolves when the count differs from `known`, at the latest after `atMostMs`. */
  after(known: number, atMostMs: number): Promise<void>
  close(): void
}

/**
 * Sends hints through file changes in a folder, with one file per process. The system notifies all
 * watchers at once. A process does not receive its own hints. The files have no meaningful content.
 * If the folder cannot be watched, waits last a few milliseconds.
 */
export function createFileNudge(folder: string): Nudge {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  removeAbandoned(folder)
  const name = `${process.pid}.${randomBytes(4).toString('hex')}`
  const path = join(folder, name)
  const file = openSync(path, 'w', 0o600)
  let received = 0
  let waiting: (() => void)[] = []
  let watcher: FSWatcher | undefined
  let closed = false

  function wake() {
    received += 1
    const woken = waiting
    waiting = []
    for (const resolve of woken) resolve()
  }

  try {
    watcher = watch(folder, { persistent: false }, (_change, changed) => {
      if (changed !== name) wake()
    })
    watcher.on('error', () => {
      watcher?.close()
      watcher = undefined
    })
  } catch {
    // The machine's limit of watchers is reached.
  }

  return {
    announce() {
      if (!closed) write(file, '.', 0, () => {})
    },

    count: () => received,

    after(known, atMostMs) {
      if (received !== known || closed) return Promise.resolve()
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
      rmSync(path, { force: true })
      wake()
    },
  }
}

const unwatchedMs = 10

/** Removes the files of killed processes. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    try {
      process.kill(Number(name.split('.')[0]), 0)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') rmSync(join(folder, name), { force: true })
    }
  }
}
