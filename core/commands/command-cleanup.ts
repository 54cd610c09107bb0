import type { Command, CommandStore } from './command-store.ts'
import type { ScreenshotStore } from './screenshot-store.ts'

export interface CommandCleanup {
  /**
   * Records expired commands, deletes abandoned uploads, and removes commands past their retention.
   * Safe to run in several processes at once.
   */
  run(): Promise<void>
}

/** No upload takes this long, in milliseconds; an older one belongs to a dead process. */
const uploadsDeadAfterMs = 600_000
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

  async function forEachInBatches(find: () => Promise<Command[]>, each: (command: Command) => Promise<void>) {
    for (;;) {
      const found = await find()
      for (const command of found) await each(command)
      if (found.length < batch) return
    }
  }

  return {
    async run() {
      const time = new Date(now())
      const dead = new Date(now() - uploadsDeadAfterMs)
      await store.expire(time)
      await forEachInBatches(
        () => store.withOldUploads(dead, batch),
        (command) => deleteLeftovers(command, dead),
      )
      await forEachInBatches(
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
