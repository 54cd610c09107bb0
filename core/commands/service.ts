import { createJob } from '../concurrency/job.ts'
import type { Core } from '../core.ts'
import type { LogService } from '../log/service.ts'
import type { VisitorService } from '../visitors/service.ts'
import type { WorkspaceService } from '../workspaces/service.ts'
import { createCommandDecisions } from './command-decisions.ts'
import type { CommandStore } from './command-store.ts'
import { createCommands } from './commands.ts'
import type { Command } from './model.ts'
import type { ScreenshotStore } from './screenshot-store.ts'
import { createScreenshots } from './screenshots.ts'

const cleanupEveryMs = 60_000

/** Maximum number of concurrent uploads of one screenshot. */
const maxUploads = 4

export function createCommandService(
  { config, idempotency, logger, now }: Core,
  { commands: store, screenshots: files }: { commands: CommandStore; screenshots: ScreenshotStore },
  { log }: LogService,
  { siteDirectory: { installations } }: WorkspaceService,
  { sessions, visitorAccess: access }: VisitorService,
) {
  const lifetime = config.COMMAND_LIFETIME_SECONDS
  const screenshotMaxBytes = config.SCREENSHOT_MAX_BYTES
  const idempotencyRetention = config.IDEMPOTENCY_RETENTION_SECONDS
  const cleanup = createCommandCleanup({ store, files, now })

  return {
    commands: createCommands({
      store,
      sessions,
      access,
      installations,
      log,
      now,
      settings: { lifetime, retention: config.COMMAND_RETENTION_DAYS },
    }),
    commandDecisions: createCommandDecisions({
      store,
      access,
      idempotency,
      now,
      settings: { lifetime, screenshotMaxBytes, idempotencyRetention },
    }),
    screenshots: createScreenshots({
      store,
      files,
      access,
      idempotency,
      logger,
      now,
      settings: { maxBytes: screenshotMaxBytes, maxUploads, idempotencyRetention },
    }),
    jobs: [createJob({ name: 'clean up commands', everyMs: cleanupEveryMs, run: cleanup.run, logger })],
  }
}

export type CommandService = ReturnType<typeof createCommandService>

interface CommandCleanup {
  /**
   * Sets the state `expired` on commands whose time limit has passed, deletes abandoned uploads,
   * and deletes commands after their retention time. Several processes may run it at the same time.
   */
  run(): Promise<void>
}

/**
 * Age in milliseconds at which an unfinished upload is deleted. No upload takes so long, so its
 * process must have died.
 */
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
