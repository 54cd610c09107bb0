import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import {
  acknowledgeNavigation,
  acknowledgeScreenshot,
  cancelCommand,
  findCommand,
  listCommands,
  requestNavigation,
  requestScreenshot,
} from '../commands/commands.ts'
import {
  abandonUpload,
  beginUpload,
  cleanUpCommands,
  completeUpload,
  openScreenshot,
  screenshotStoreOf,
  uploadScreenshot,
} from '../commands/screenshots.ts'
import type { Core } from '../core.ts'
import type { Database } from '../database/database.ts'
import { createIdempotency, createIdempotencyStore } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import { logOf } from '../log/event-log.ts'
import { createEventStore } from '../log/event-store.ts'
import type { Session } from '../sessions/model.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { defaultCapabilities, type Installation } from '../workspaces/model.ts'
import { siteDirectoryOf } from '../workspaces/workspaces.ts'
import { bareCore, logCore } from './core-with.ts'

type Functions = Record<string, (core: Core, ...args: never[]) => unknown>

/** Binds functions to a core. */
const bound = <F extends Functions>(core: Core, functions: F) =>
  Object.fromEntries(
    Object.entries(functions).map(([name, each]) => [name, (...args: never[]) => each(core, ...args)]),
  ) as { [K in keyof F]: F[K] extends (core: Core, ...args: infer A) => infer R ? (...args: A) => R : never }

export const site = 'https://shop.example'
export const lifetime = 120

/** Creates command services over a real database, with fake sessions, installation and clock. */
export function createTestCommands(database: Database) {
  const time = { now: Date.UTC(2030, 0, 1) }
  const now = () => time.now
  const sessions = new Map<string, Session>()
  const installation = { enabled: true, origins: [site, 'https://*.help.example'], capabilities: defaultCapabilities }
  const events = createEventStore(database.collections)
  const log = logOf(logCore(events, { now }))
  const idempotency = createIdempotency(createIdempotencyStore(database.collections), now)
  /** Fake access check that accepts a session's id as its access grant. */
  const access: ReturnType<typeof visitorAccessOf> = {
    authorize: async ({ accessGrant }) => ({
      session: sessions.get(accessGrant)!,
      installation: installation as Installation,
      grantIssuedAt: new Date(time.now),
      grantExpiresAt: new Date(time.now + 900_000),
    }),
    isUnchanged: () => true,
    endOf: async () => ({}),
    live: async (sessionId) => sessions.get(sessionId)!,
    rejectEnded: () => Promise.reject(new Error('commands end no session')),
  }
  const config = {
    COMMAND_LIFETIME_SECONDS: lifetime,
    COMMAND_RETENTION_DAYS: 30,
    SCREENSHOT_MAX_BYTES: 1_000_000,
    IDEMPOTENCY_RETENTION_SECONDS: 86_400,
  }
  const logger = pino({ level: 'silent' })
  const core = bareCore({ config, database, db: database.collections, idempotency, logger, now })
  visitorAccessOf.set(core, access)
  sessionStoreOf.set(core, { find: async (ids: string[]) => ids.map((id) => sessions.get(id)!) } as never)
  siteDirectoryOf.set(core, { installations: { get: async () => installation } } as never)
  let fault: Error | undefined
  logOf.set(core, {
    ...log,
    append: async (draft) => {
      if (fault) throw fault
      return log.append(draft)
    },
  })

  return {
    commands: bound(core, {
      requestNavigation,
      requestScreenshot,
      cancel: cancelCommand,
      find: findCommand,
      list: listCommands,
    }),
    decisions: bound(core, { acknowledgeNavigation, acknowledgeScreenshot }),
    screenshots: bound(core, { upload: uploadScreenshot, open: openScreenshot }),
    store: bound(core, { beginUpload, completeUpload, abandonUpload }),
    files: screenshotStoreOf(core),
    cleanup: { run: () => cleanUpCommands(core) },
    time,
    installation,
    /** Makes every event write fail with the error; `undefined` makes writes succeed again. */
    breakLog(error: Error | undefined) {
      fault = error
    },
    newSession(): Session {
      const session = {
        sessionId: newId('ses'),
        conversationId: newId('cnv'),
        workspaceId: 'ws_1',
        origin: site,
      } as Session
      sessions.set(session.sessionId, session)
      return session
    },
    eventsOf: async ({ conversationId }: Session) => events.readAfter({ conversationId, after: 0 }, 1000),
    credentials: ({ sessionId }: Session) => ({ accessGrant: sessionId, origin: site }),
    newKey: (): string => randomUUID(),
  }
}
