import type { Command, CommandStore } from './command-store.ts'
import type { ScreenshotStore } from './screenshot-store.ts'

export interface CommandCleanup {
  /**
   * Writes down what has expired, deletes what uploads left behind, and what is kept no longer. Any number of processes
   * may do so at once.
   */
  run(): Promise<void>
}

/** No upload takes this long, in milliseconds: its process has died. */
const uploadsDeadAfter = 600_000
const batch = 100

export function createCommandCleanup(dependencies: {
  store: CommandStore
  files: Pick<ScreenshotStore, 'delete'>
  now: () => number
}): CommandCleanup {
  const { store, files, now } = dependencies

  async function deleteLeftovers({ commandId, uploads }: Command, startedBefore: Date) {
    for (const { fileId } of uploads.filter(({ startedAt }) => startedAt <= startedBefore)) {
      if (!(await store.abandonUpload(commandId, fileId))) continue
      await files.delete(fileId)
      await store.forgetUpload(commandId, fileId)
    }
  }

  async function inBatches(find: () => Promise<Command[]>, each: (command: Command) => Promise<void>) {
    for (;;) {
      const found = await find()
      for (const command of found) await each(command)
      if (found.length < batch) return
    }
  }

  return {
    async run() {
      const time = new Date(now())
      const dead = new Date(now() - uploadsDeadAfter)
      await store.expire(time)
      await inBatches(
        () => store.withOldUploads(dead, batch),
        (command) => deleteLeftovers(command, dead),
      )
      await inBatches(
        () => store.dueForDeletion(time, batch),
        async (command) => {
          await deleteLeftovers(command, time)
          if (command.screenshot) await files.delete(command.screenshot.fileId)
          await store.remove(command.commandId)
        },
      )
    },
  }
}
