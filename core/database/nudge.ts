import { randomBytes } from 'node:crypto'
import { closeSync, type FSWatcher, mkdirSync, openSync, readdirSync, rmSync, watch, write } from 'node:fs'
import { join } from 'node:path'

/** Word from the other processes of this machine that there may be something new. It can come late or not at all. */
export interface Nudge {
  announce(): void
  /** How often another one has announced, as far as it is known here. */
  heard(): number
  /** Resolves when more has been announced than was heard, at the latest after so many milliseconds. */
  after(heard: number, atMostMs: number): Promise<void>
  close(): void
}

/**
 * A nudge through the files of a folder, one for each process, whose changes the system tells all who watch it at once. What a process
 * announces itself it does not hear. Nothing of worth is in the files. Where they cannot be watched it is a pause of some milliseconds.
 */
export function createFileNudge(folder: string): Nudge {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  removeAbandoned(folder)
  const name = `${process.pid}.${randomBytes(4).toString('hex')}`
  const path = join(folder, name)
  const file = openSync(path, 'w', 0o600)
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
    watcher = watch(folder, { persistent: false }, (_change, changed) => {
      if (changed !== name) wake()
    })
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
      rmSync(path, { force: true })
      wake()
    },
  }
}

const unwatchedMs = 10

/** Of processes that were killed. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    try {
      process.kill(Number(name.split('.')[0]), 0)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') rmSync(join(folder, name), { force: true })
    }
  }
}
