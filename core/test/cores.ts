import { randomUUID } from 'node:crypto'
import type { Scheduler } from 'fast-check'
import { pino } from 'pino'
import { afterAll, beforeAll } from 'vitest'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { signAssertion } from '../../test/support/assertion.ts'
import { isLong, today } from '../../test/support/is-long.ts'
import { latest } from '../../test/support/latest.ts'
import { type TestDatabase, testDatabase } from '../../test/support/test-database.ts'
import { workspaceSessionSecret } from '../../test/support/workspace-session.ts'
import { readCoreConfig } from '../config.ts'
import { createCore, type RunningCore } from '../context.ts'
import { listMessagesForVisitor, sendAsAgent, sendAsVisitor } from '../conversations/messages.ts'
import type { Database } from '../database/database.ts'
import { clearIdentity, identifyVisitor } from '../identity/identification.ts'
import { createEventStore } from '../log/event-store.ts'
import type { SessionContent, VisitorCredentials } from '../sessions/model.ts'
import { closeSession, createSession, renewSession } from '../visitors/sessions.ts'
import type { Nudge } from '../wakeups/wakeup-store.ts'
import type { InstallationSettings } from '../workspaces/model.ts'
import { createConnection, createInstallation, createWorkspace } from '../workspaces/workspaces.ts'
import { createTestNudge } from './nudge.ts'
import { openTestDatabase } from './open-test-database.ts'
import { databaseWithHook, mortalDatabase, scheduledDatabase } from './scheduled-database.ts'
import { authorizeStream, openStreamAt, type StreamStart } from './streams.ts'
import { credentialsOf, site } from './visitor-credentials.ts'

const secretKeys: [{ kid: string; secret: Uint8Array }] = [{ kid: 'k1', secret: new Uint8Array(32).fill(3) }]

/** Creates a core as in production, without log output. Its jobs run only after `start`. */
export const createTestCore = (database: Database, now = Date.now, env: Record<string, string> = {}, nudge?: Nudge) =>
  createCore({
    config: readCoreConfig(env),
    ...(nudge && { nudge }),
    secretKeys,
    workspaceSessionSecrets: [new TextEncoder().encode(workspaceSessionSecret)],
    database,
    logger: pino({ level: 'silent' }),
    now,
  })

interface CoresOptions {
  count?: number
  env?: Record<string, string>
  /** Whether the cores run their jobs and read each other's wake-ups. Default: true. */
  started?: boolean
  /** Whether only `advance` moves the clock. Default: false. */
  frozen?: boolean
}

/** A visitor's session, its workspace and site key, and the credentials for its calls. */
export interface TestVisitor extends SessionContent {
  workspaceId: string
  publicSiteKey: string
  credentials: VisitorCredentials
}

/**
 * Starts cores before the tests of a file and stops them afterwards. Call this function at the top
 * level of the file. Use its result in hooks and tests only.
 */
export function testCores(options: CoresOptions = {}): TestCores {
  const database = testDatabase()
  let cores: TestCores | undefined
  beforeAll(async () => {
    cores = await startTestCores(database, options)
  })
  afterAll(() => cores?.stop())
  return latest(() => cores!)
}

/** Starts cores over one database, with a shared clock and one installation. */
export async function startTestCores(
  { uri, name }: TestDatabase,
  { count = 1, env = {}, started = true, frozen = false }: CoresOptions = {},
) {
  let aheadMs = 0
  const startedAt = Date.now()
  const now = () => (frozen ? startedAt : Date.now()) + aheadMs
  const nudge = createTestNudge()
  const openCore = (database: Database) => createTestCore(database, now, env, nudge)
  const cores: RunningCore[] = []
  for (let index = 0; index < count; index += 1) {
    const core = openCore(await openTestDatabase({ uri, name }))
    if (started) core.start()
    cores.push(core)
  }
  if (!cores[0]) throw new Error('a test needs a core')
  const first = cores[0]
  /** The cores of this test, and the last mortal one. */
  let opened = cores
  function openMortalCore(writes: number) {
    const mortal = openCore(mortalDatabase(first.database, writes))
    opened = [...cores, mortal]
    return mortal
  }

  /** Creates an installation. Without a `workspaceId`, also creates a workspace for it. */
  async function newSite(settings: InstallationSettings = {}, workspaceId?: string) {
    workspaceId ??= (await createWorkspace(first, 'Shop')).workspaceId
    const { connectionId } = await createConnection(first, workspaceId, 'Site', undefined)
    const { installation, identitySecret } = await createInstallation(
      first,
      connectionId,
      { origins: [site], ...settings },
      undefined,
    )
    const { publicSiteKey } = installation
    return {
      workspaceId,
      connectionId,
      publicSiteKey,
      /** Signs an identity assertion, as the host's backend does. */
      sign: (claims: Record<string, unknown> = {}) =>
        signAssertion({ siteKey: publicSiteKey, ...identitySecret, now: now() }, { claims }),
    }
  }
  const ownSite = await newSite()

  async function newSession(
    core = first!,
    clientInstanceId: string = randomUUID(),
    { publicSiteKey } = ownSite,
  ): Promise<SessionContent> {
    const request = { publicSiteKey, origin: site, clientInstanceId, idempotencyKey: randomUUID() }
    return (await createSession(core, request)).content
  }

  const identify = (
    session: SessionContent,
    assertion: string,
    { core = first!, key = randomUUID() as string } = {},
  ): Promise<SessionContent> =>
    identifyVisitor(core, { credentials: credentialsOf(session), assertion, idempotencyKey: key }).then(
      ({ content }) => content,
    )

  return {
    ...ownSite,
    uri,
    name,
    cores,
    /** Returns `cores`, and the last mortal core. */
    get opened() {
      return opened
    },
    /** `core` is the first core. `other` is the second core, or the first one if there is no second. */
    core: first,
    other: cores[1] ?? first,
    now,
    newSite,
    newSession,
    /** Returns a core that dies after this number of writes: every later write fails. */
    mortalCore: openMortalCore,
    /**
     * Runs a test repeatedly until its core survives. In each run, the core dies after more writes
     * than in the run before. The test returns whether its core died. `npm run test:long` tries every
     * number of writes. `npm test` tries one of `every` numbers, other ones each day.
     *
     * @param everyInLong `npm run test:long` tries one of this many numbers; by default, all
     */
    async untilOneSurvives(
      test: (mortal: RunningCore, writes: number) => Promise<boolean>,
      { every = 4, everyInLong = 1 } = {},
    ) {
      const step = isLong ? everyInLong : every
      for (let writes = today % step, died = true; died; writes += step) {
        died = await test(openMortalCore(writes), writes)
      }
    },
    /**
     * Returns a core whose database calls run in the order of the scheduler. The core does not read
     * wake-ups. With `writes`, it dies after this number of writes.
     */
    scheduledCore: (
      scheduler: Scheduler,
      { writes, ...options }: Parameters<typeof scheduledDatabase>[2] & { writes?: number | undefined } = {},
    ): RunningCore => {
      const database = writes === undefined ? first.database : mortalDatabase(first.database, writes)
      return openCore(scheduledDatabase(scheduler, database, options))
    },
    /** Returns a core that runs `before` before each of its database calls, with the number of the call. */
    coreWithHook: (before: (call: number) => Promise<unknown> | undefined) =>
      openCore(databaseWithHook(first.database, before)),
    /** Advances the clock of all cores. */
    advance(seconds: number) {
      aheadMs += seconds * 1000
    },

    async newVisitor(at = ownSite): Promise<TestVisitor> {
      const session = await newSession(first, randomUUID(), at)
      const { workspaceId, publicSiteKey } = at
      return { ...session, workspaceId, publicSiteKey, credentials: credentialsOf(session) }
    },

    identify,

    /** Creates a session of a verified visitor. The default visitor is new. */
    newVerified: async (sub = newSubject(), core = first): Promise<SessionContent> =>
      identify(await newSession(core), ownSite.sign({ sub }), { core }),

    clear: (session: SessionContent, { core = first, key = randomUUID() as string } = {}) =>
      clearIdentity(core, { credentials: credentialsOf(session), idempotencyKey: key }).then(({ content }) => content),

    renew: (session: SessionContent, { core = first } = {}) =>
      renewSession(core, {
        credentials: credentialsOf(session),
        sessionId: session.sessionId,
        renewalToken: session.renewalToken,
        idempotencyKey: randomUUID(),
      }).then(({ content }) => content),

    close: (
      session: SessionContent,
      { core = first, key = randomUUID() as string, scope = 'continuity' as 'continuity' | 'panel' } = {},
    ) => closeSession(core, { credentials: credentialsOf(session), scope, idempotencyKey: key }),

    send: (session: SessionContent, body: string, { core = first, key = randomUUID() as string } = {}) =>
      sendAsVisitor(core, {
        credentials: credentialsOf(session),
        clientOperationId: key,
        body,
        contentType: 'text',
      }),

    history: async (session: SessionContent, core = first) =>
      (await listMessagesForVisitor(core, credentialsOf(session), {})).messages.map(({ message }) => message?.body),

    /** Returns all events of the conversation, including transient ones. */
    log: (conversationId: string) =>
      createEventStore(first.database.collections).readAfter({ conversationId, after: 0 }, 10_000, {
        transient: true,
      }),

    /** Opens a stream of the session's log like a gateway, by default from the beginning. */
    openStream: async (session: SessionContent, core = first, start: StreamStart = { afterSequence: 0 }) =>
      openStreamAt(core, await authorizeStream(core, session), start),

    stop: () => Promise.all(cores.map((core) => core.stop())),
  }
}

export type TestCores = Awaited<ReturnType<typeof startTestCores>>

/** Resolves to true if the promise is rejected, else to false. */
export const hasFailed = (attempt: Promise<unknown>) =>
  attempt.then(
    () => false,
    () => true,
  )

/** A host's user id that only one test uses. */
export const newSubject = () => `customer-${randomUUID()}`

/** Resolves to the error code of a rejected promise, or to `ok`. */
export const codeOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'ok',
    (error: { code?: PublicErrorCode; message: string }) => (error.code === undefined ? error.message : error.code),
  )

/** Sends a visitor's message. `clientOperationId` is also the text of the message. */
export const send = (
  core: RunningCore,
  visitor: SessionContent,
  clientOperationId: string,
  body: string = clientOperationId,
) => sendAsVisitor(core, { credentials: credentialsOf(visitor), clientOperationId, body, contentType: 'text' })

/** Sends an agent's message. `clientOperationId` is also the text of the message. */
export const answer = (core: RunningCore, { conversationId }: SessionContent, clientOperationId: string) =>
  sendAsAgent(core, { conversationId, clientOperationId, body: clientOperationId })
