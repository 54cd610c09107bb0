import { createJob, type Job } from '../concurrency/job.ts'
import type { CoreKit } from '../kit.ts'
import type { LogService } from '../log/service.ts'
import type { VisitorService } from '../visitors/service.ts'
import type { WorkspaceService } from '../workspaces/service.ts'
import { createCommandCleanup } from './command-cleanup.ts'
import { type CommandDecisions, createCommandDecisions } from './command-decisions.ts'
import { type Commands, createCommands } from './commands.ts'
import { createScreenshots, type Screenshots } from './screenshots.ts'

/**
 * Commands to a visitor's page: the operator's request, the visitor's decision, the screenshot, the
 * cleanup.
 */
export interface CommandService {
  commands: Commands
  commandDecisions: CommandDecisions
  screenshots: Screenshots
  jobs: Job[]
}

const cleanupEveryMs = 60_000

export function createCommandService(
  { config, stores, idempotency, logger, now }: CoreKit,
  { log }: LogService,
  { directory: { installations } }: WorkspaceService,
  { sessions, visitorAccess: access }: VisitorService,
): CommandService {
  const { commands: store, screenshots: files } = stores
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
      settings: { maxBytes: screenshotMaxBytes, maxUploads: config.SCREENSHOT_UPLOADS_MAX, idempotencyRetention },
    }),
    jobs: [createJob({ name: 'clean up commands', everyMs: cleanupEveryMs, run: cleanup.run, logger })],
  }
}
