import type { Logger } from 'pino'
import { createRecurring, type Recurring } from '../concurrency/recurring.ts'
import type { CoreConfig } from '../config.ts'
import type { Idempotency } from '../idempotency.ts'
import type { EventLog } from '../log/event-log.ts'
import type { SessionParts } from '../sessions/session-parts.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import { createCommandStore } from '../store/commands.ts'
import type { Database } from '../store/database.ts'
import { createScreenshotStore } from '../store/screenshots.ts'
import type { Directory } from '../workspaces/directory.ts'
import { createCommandCleanup } from './command-cleanup.ts'
import { type CommandDecisions, createCommandDecisions } from './command-decisions.ts'
import { type Commands, createCommands } from './commands.ts'
import { createScreenshots, type Screenshots } from './screenshots.ts'

export interface CommandParts {
  commands: Commands
  commandDecisions: CommandDecisions
  screenshots: Screenshots
  chores: Recurring[]
}

export interface CommandPartsDependencies {
  config: CoreConfig
  collections: Database['collections']
  files: Database['screenshots']
  sessions: SessionParts['sessions']
  access: VisitorAccess
  installations: Directory['installations']
  log: EventLog
  idempotency: Idempotency
  logger: Logger
  now: () => number
}

const cleanupEveryMs = 60_000

/** What commands to a visitor's page go through: the request, the visitor's decision, the screenshot, the end. */
export function createCommandParts(dependencies: CommandPartsDependencies): CommandParts {
  const { config, collections, sessions, access, installations, log, idempotency, logger, now } = dependencies
  const store = createCommandStore(collections)
  const files = createScreenshotStore(dependencies.files)
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
    chores: [createRecurring({ name: 'clean-up of commands', everyMs: cleanupEveryMs, run: cleanup.run, logger })],
  }
}
