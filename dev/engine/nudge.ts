import { randomBytes } from 'node:crypto'
import { closeSync, type FSWatcher, mkdirSync, openSync, readdirSync, rmSync, watch, write } from 'node:fs'
import { join } from 'node:path'
import type { Nudge } from '../../core/wakeups/wakeup-store.ts'

/**
 * Notifies the other processes of this machine that a wake-up was written, by changing a file. The
 * process that creates a nudge must close it.
 */
export interface FileNudge extends Nudge {
  close(): void
}

/**
 * Creates a nudge if the database has a unix socket as address, because all its cores then run on
 * this machine. Returns undefined for any other database.
 */
export function nudgeOfDatabase(uri: string, name: string): FileNudge | undefined {
  const socketPath = URL.canParse(uri) ? decodeURIComponent(new URL(uri).host) : ''
  return socketPath.endsWith('.sock') ? createFileNudge(`${socketPath}.${name}.nudges`) : undefined
}

/**
 * Creates a nudge that writes to a file of its process in the given folder. The operating system
 * then notifies all processes that watch the folder. A process ignores changes of its own file. The
 * content of the files has no meaning. If the folder cannot be watched, each wait ends after a few
 * milliseconds.
 */
export function createFileNudge(folder: string): FileNudge {
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
    // The machine allows no more watchers, so waits use short timeouts instead.
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
