import { randomUUID } from 'node:crypto'
import type { Scheduler } from 'fast-check'
import { pino } from 'pino'
import { signAssertion } from '../test/support/assertion.ts'
import type { TestDatabase } from '../test/support/test-database.ts'
import { workspaceSessionSecret } from '../test/support/workspace-session.ts'
import { readCoreConfig } from './config.ts'
import { type CoreContext, createCoreContext } from './context.ts'
import { type Collections, type Database, openDatabase } from './database/database.ts'
import type { SubscriptionSink } from './log/stream-subscriptions.ts'
import { interleavedDatabase } from './test-interleaving.ts'
import type { SessionContent } from './visitors/session-content.ts'

/** Origin of every test visitor's page. */
export const site = 'https://shop.example'

const secretKeys: [{ kid: string; secret: Uint8Array }] = [{ kid: 'k1', secret: new Uint8Array(32).fill(3) }]

/**
 * Starts cores over one database, with a shared clock that a test can advance, and one
 * installation.
 */
export async function startTestCores(
  { uri, name }: TestDatabase,
  { count = 1, env = {} }: { count?: number; env?: Record<string, string> } = {},
) {
  let ahead = 0
  const now = () => Date.now() + ahead
  const openCore = (database: Database) =>
    createCoreContext({
      config: readCoreConfig(env),
      secretKeys,
      workspaceSessionSecrets: [new TextEncoder().encode(workspaceSessionSecret)],
      database,
      logger: pino({ level: 'silent' }),
      now,
    })
  const cores: CoreContext[] = []
  for (let index = 0; index < count; index += 1) {
    const core = openCore(await openDatabase({ uri, name, timeoutMs: 5000 }))
    core.start()
    cores.push(core)
  }
  const [first] = cores
  if (!first) throw new Error('a test needs a core')
  const { workspaceId } = await first.workspaces.createWorkspace('Test')
  const { connectionId } = await first.workspaces.createConnection(workspaceId, 'Site', undefined)
  const { installation, identitySecret } = await first.workspaces.createInstallation(
    connectionId,
    { origins: [site] },
    undefined,
  )
  const { publicSiteKey } = installation

  return {
    cores,
    core: first,
    workspaceId,
    connectionId,
    publicSiteKey,
    now,
    /** A core that dies after a number of writes: later writes do not reach the database. */
    mortalCore: (writes: number) => openCore(mortal(first.database, writes)),
    /** A core with every database call ordered by the scheduler. It does not follow wake-ups. */
    interleavedCore: (scheduler: Scheduler) => openCore(interleavedDatabase(scheduler, first.database)),
    /**
     * A core whose database calls wait for `turn`, which gets their number. With `writes` it also
     * dies after that number.
     */
    scheduledCore: (turn: (call: number, label: string) => Promise<unknown>, writes?: number) =>
      openCore(scheduled(writes === undefined ? first.database : mortal(first.database, writes), turn)),
    /** Advances the clock of all cores. */
    advance(seconds: number) {
      ahead += seconds * 1000
    },
    sign: (claims: Record<string, unknown> = {}) =>
      signAssertion({ siteKey: publicSiteKey, ...identitySecret, now: now() }, { claims }),

    async newSession(core = first, clientInstanceId: string = randomUUID()): Promise<SessionContent> {
      const { content } = await core.sessions.create({
        publicSiteKey,
        origin: site,
        clientInstanceId,
        idempotencyKey: randomUUID(),
      })
      return content
    },

    identify: (
      { accessGrant }: SessionContent,
      assertion: string,
      { core = first, key = randomUUID() as string } = {},
    ) =>
      core.identification
        .identify({ credentials: { accessGrant, origin: site }, assertion, idempotencyKey: key })
        .then(({ content }) => content),

    clear: ({ accessGrant }: SessionContent, { core = first, key = randomUUID() as string } = {}) =>
      core.identification
        .clear({ credentials: { accessGrant, origin: site }, idempotencyKey: key })
        .then(({ content }) => content),

    renew: ({ accessGrant, sessionId, renewalToken }: SessionContent, { core = first } = {}) =>
      core.renewals
        .renew({ credentials: { accessGrant, origin: site }, sessionId, renewalToken, idempotencyKey: randomUUID() })
        .then(({ content }) => content),

    close: (
      { accessGrant }: SessionContent,
      { core = first, key = randomUUID() as string, scope = 'continuity' as 'continuity' | 'panel' } = {},
    ) => core.sessions.close({ credentials: { accessGrant, origin: site }, scope, idempotencyKey: key }),

    send: ({ accessGrant }: SessionContent, body: string, { core = first, key = randomUUID() as string } = {}) =>
      core.messages.sendAsVisitor({
        credentials: { accessGrant, origin: site },
        clientOperationId: key,
        body,
        contentType: 'text',
      }),

    history: async ({ accessGrant }: SessionContent, core = first) =>
      (await core.messages.listForVisitor({ accessGrant, origin: site }, {})).messages.map(
        ({ message }) => message?.body,
      ),

    /** Opens a stream of the session's log like a gateway, by default from the beginning. */
    async openStream({ accessGrant }: SessionContent, core = first, afterSequence = 0) {
      const { session } = await core.visitorAccess.authorize({ accessGrant, origin: site })
      const [conversation] = await core.stores.conversations.find([session.conversationId])
      const stream = { types: [] as string[], json: [] as string[], sequences: [] as number[], ended: false }
      const sink: SubscriptionSink = {
        opened() {},
        event(_, { type, json, sequence }) {
          stream.sequences.push(sequence)
          stream.types.push(type)
          stream.json.push(json)
        },
        advanced() {},
        paused() {},
        closed() {
          stream.ended = true
        },
      }
      await core.subscriptions.open({
        id: 1,
        sink,
        session,
        epoch: conversation?.epoch ?? '',
        start: { afterSequence },
      })
      return stream
    },

    stop: () => Promise.all(cores.map((core) => core.stop())),
  }
}

export type TestCores = Awaited<ReturnType<typeof startTestCores>>

const writing = new Set([
  'insertOne',
  'insertMany',
  'updateOne',
  'updateMany',
  'findOneAndUpdate',
  'replaceOne',
  'deleteOne',
  'deleteMany',
  'bulkWrite',
])

function mortal(database: Database, writes: number): Database {
  let left = writes
  const mortalPart = <T extends object>(part: T, mortalMethods: ReadonlySet<string>, counts = true): T =>
    new Proxy(part, {
      get(target, property) {
        const value = Reflect.get(target, property)
        if (typeof value !== 'function') return value
        return (...call: unknown[]) => {
          if (mortalMethods.has(String(property))) {
            if (left <= 0) return Promise.reject(new Error('dead'))
            if (counts) left -= 1
          }
          return value.apply(target, call)
        }
      },
    })
  const collections = Object.entries(database.collections).map(([name, collection]) => [
    name,
    mortalPart(collection, writing, name !== 'wakeups'),
  ])
  return {
    ...database,
    collections: Object.fromEntries(collections) as Collections,
    screenshots: mortalPart(database.screenshots, new Set(['delete'])),
    close: async () => {},
  }
}

/** The collections with the state of sessions. */
const scheduledCollections = [
  'sessions',
  'subjects',
  'visitors',
  'conversations',
  'erasures',
  'nonces',
  'idempotency',
  'events',
]

function scheduled(database: Database, turn: (call: number, label: string) => Promise<unknown>): Database {
  let calls = 0
  const waiting = <T extends object>(part: T, name: string): T =>
    new Proxy(part, {
      get(target, property) {
        const value = Reflect.get(target, property)
        if (typeof value !== 'function') return value
        return (...call: unknown[]) => {
          const begin = () => value.apply(target, call)
          const isBuilder = ['find', 'aggregate', 'sort', 'limit', 'skip', 'project'].includes(String(property))
          if (isBuilder) return waiting(begin(), name)
          calls += 1
          return turn(calls, `${name}.${String(property)}`).then(begin)
        }
      },
    })
  const collections = Object.entries(database.collections).map(([name, collection]) => [
    name,
    scheduledCollections.includes(name) ? waiting(collection, name) : collection,
  ])
  return { ...database, collections: Object.fromEntries(collections) as Collections, close: async () => {} }
}
