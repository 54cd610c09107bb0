import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { createCommandDecisions } from '../commands/command-decisions.ts'
import { createCommandStore } from '../commands/command-store.ts'
import { createCommands } from '../commands/commands.ts'
import { createScreenshotStore } from '../commands/screenshot-store.ts'
import { createScreenshots } from '../commands/screenshots.ts'
import { createCommandCleanup } from '../commands/service.ts'
import type { Database } from '../database/database.ts'
import { createIdempotency } from '../idempotency/idempotency.ts'
import { createIdempotencyStore } from '../idempotency/idempotency-store.ts'
import { newId } from '../ids.ts'
import { createEventLog } from '../log/event-log.ts'
import { createEventStore } from '../log/event-store.ts'
import { createLogHeads } from '../log/log-heads.ts'
import type { Session } from '../sessions/model.ts'
import type { VisitorAccess } from '../sessions/visitor-access.ts'
import { defaultCapabilities, type Installation } from '../workspaces/model.ts'

export const site = 'https://shop.example'
export const lifetime = 120

/** Creates command services over a real database, with fake sessions, installation and clock. */
export function createTestCommands(database: Database) {
  const time = { now: Date.UTC(2030, 0, 1) }
  const now = () => time.now
  const sessions = new Map<string, Session>()
  const installation = { enabled: true, origins: [site, 'https://*.help.example'], capabilities: defaultCapabilities }
  const events = createEventStore(database.collections)
  const store = createCommandStore(database.collections)
  const files = createScreenshotStore(database.screenshots)
  const log = createEventLog({ store: events, heads: createLogHeads(events), now, onAppended: () => {} })
  const idempotency = createIdempotency(createIdempotencyStore(database.collections), now)
  /** Fake access check that accepts a session's id as its access grant. */
  const access: VisitorAccess = {
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
  const screenshots = createScreenshots({
    store,
    files,
    access,
    idempotency,
    now,
    logger: pino({ level: 'silent' }),
    settings: { maxBytes: 1_000_000, maxUploads: 2, idempotencyRetention: 86_400 },
  })
  let fault: Error | undefined
  const commands = createCommands({
    store,
    sessions: { find: async (sessionId) => sessions.get(sessionId)! },
    access,
    installations: { get: async () => installation as Installation },
    log: {
      append: async (draft) => {
        if (fault) throw fault
        return log.append(draft)
      },
    },
    now,
    settings: { lifetime, retention: 30 },
  })
  const decisions = createCommandDecisions({
    store,
    access,
    idempotency,
    now,
    settings: { lifetime, screenshotMaxBytes: 1_000_000, idempotencyRetention: 86_400 },
  })

  return {
    commands,
    decisions,
    screenshots,
    store,
    files,
    cleanup: createCommandCleanup({ store, files, now }),
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
