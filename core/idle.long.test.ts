import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type ConnectError, createClient } from '@connectrpc/connect'
import { Collection } from 'mongodb'
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { EventsService } from '#proto/events/v1/events_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { createAuthorizedTransport } from '../core-client/authorized-transport.ts'
import { testDatabase } from '../test/support/test-database.ts'
import { until } from '../test/support/until.ts'
import { banSession } from './bans/bans.ts'
import { sendAsAgent } from './conversations/messages.ts'
import { openDatabase } from './database/database.ts'
import { createCoreMetrics } from './metrics.ts'
import { createSignInLink, signIn } from './operators/console-sessions.ts'
import { visitorAccessOf } from './sessions/visitor-access.ts'
import { createTestCore } from './test/cores.ts'
import { createTestNudge } from './test/nudge.ts'
import { authorizeStream, openStreamAt } from './test/streams.ts'
import { transportTo } from './test/transports.ts'
import { credentialsOf, site } from './test/visitor-credentials.ts'
import { accessOf } from './transport/caller.ts'
import { createSession } from './visitors/sessions.ts'
import type { Nudge } from './wakeups/wakeup-store.ts'
import { tokenIdOf } from './workspaces/access.ts'
import { revokeToken } from './workspaces/tokens.ts'
import { operatorScopes } from './workspaces/workspace-sessions.ts'
import { createConnection, createInstallation, createWorkspace } from './workspaces/workspaces.ts'

// Beats of stopped cores would make a core that starts wait for them.
let database: ReturnType<typeof testDatabase>
beforeEach(() => {
  database = testDatabase({ isNew: true })
})
const testNudge = createTestNudge()
/** The periods of jobs vary, so that a single minute may have two runs of a job. */
const minutes = 2
/** Jobs look for due work with `findAndModify`, which writes nothing if there is none. Its writes are counted apart. */
const writes = ['insert', 'update', 'delete', 'bulkWrite']

/** @param nudge undefined as in `npm run serve`, where no other process announces wake-ups */
async function startCore({ nudge }: { nudge?: Nudge | undefined } = { nudge: testNudge }) {
  const metrics = createCoreMetrics()
  const core = createTestCore(await openDatabase({ ...database, timeoutMs: 60_000, metrics }), Date.now, {}, nudge)
  core.start()
  onTestFinished(core.stop)
  /** Returns how many commands the core has sent, and how many of them write. */
  async function sent() {
    const { values } = await metrics.databaseDuration.get()
    const counts = values.filter(({ metricName }) => metricName?.endsWith('_count'))
    const sum = (found: typeof counts) => found.reduce((total, { value }) => total + value, 0)
    return { all: sum(counts), writes: sum(counts.filter(({ labels }) => writes.includes(String(labels.command)))) }
  }
  /** Resolves when the core has written nothing for more than the time for which it proves that it is current. */
  async function rests() {
    let last = { writes: -1, at: 0 }
    await until('the core rests', async () => {
      const now = (await sent()).writes
      if (now !== last.writes) last = { writes: now, at: performance.now() }
      return performance.now() - last.at > 2_500
    })
  }
  return { core, sent, rests }
}

type Started = Awaited<ReturnType<typeof startCore>>

/** Begins a session on one core. The other one caches its grant and has its stream. */
async function newScene({ core }: Started, other: Started) {
  const { workspaceId } = await createWorkspace(core, 'Shop')
  const { connectionId } = await createConnection(core, workspaceId, 'Site', undefined)
  const { installation } = await createInstallation(core, connectionId, { origins: [site] }, undefined)
  const { publicSiteKey } = installation
  const request = { publicSiteKey, origin: site, clientInstanceId: randomUUID(), idempotencyKey: randomUUID() }
  const { content: session } = await createSession(core, request)
  const refusal = (of: Started) =>
    visitorAccessOf(of.core)
      .authorize(credentialsOf(session))
      .then(
        () => undefined,
        ({ message }: Error) => message,
      )
  expect(await refusal(other)).toBeUndefined()
  const stream = await openStreamAt(other.core, await authorizeStream(other.core, session), {})
  await until('the stream is live', stream.isLive)
  return { workspaceId, session, stream, refusal }
}

/** Bans the visitor on one core. The other one must not act on the state before after the answer. */
async function banAndCheck({ core }: Started, other: Started, scene: Awaited<ReturnType<typeof newScene>>) {
  const began = performance.now()
  await banSession(core, scene.session.sessionId, 'rude', undefined)
  expect(await scene.refusal(other)).toBe('VisitorBanned')
  await until('the end of the stream', () => scene.stream.ended)
  expect(scene.stream.types.at(-1)).toBe('visitor.banned')
  expect(performance.now() - began).toBeLessThan(1_000)
}

it.each([
  { count: 1, nudge: testNudge },
  { count: 2, nudge: testNudge },
  { count: 1, nudge: undefined },
])(
  '$count idle cores send at most 3 commands a second each, and each writes at most once in ten seconds',
  async ({ count, nudge }) => {
    const cores: Started[] = []
    while (cores.length < count) cores.push(await startCore({ nudge }))
    for (const each of cores) await each.rests()
    const before = await Promise.all(cores.map(({ sent }) => sent()))
    await delay(minutes * 60_000)
    for (const [index, { sent }] of cores.entries()) {
      const after = await sent()
      expect((after.all - before[index]!.all) / minutes / 60).toBeLessThanOrEqual(3)
      expect((after.writes - before[index]!.writes) / minutes / 6).toBeLessThanOrEqual(1)
    }
  },
)

// Retries, because a busy machine may take longer than a second.
it('a ban takes effect on a resting core with the answer, and ends its streams within a second', {
  retry: 2,
}, async () => {
  const [one, two] = [await startCore(), await startCore()]
  const scene = await newScene(one, two)
  await one.rests()
  await two.rests()
  await banAndCheck(one, two, scene)
})

it('a ban on a core that has just started takes effect on a resting core with the answer', { retry: 2 }, async () => {
  const one = await startCore()
  const scene = await newScene(one, one)
  await one.rests()
  await banAndCheck(await startCore(), one, scene)
})

it('an event of one core arrives at once on the streams of a resting one', { retry: 2 }, async () => {
  const [one, two] = [await startCore(), await startCore()]
  const { session, stream } = await newScene(one, two)
  await one.rests()
  await two.rests()
  const began = performance.now()
  const { conversationId } = session
  await sendAsAgent(one.core, { conversationId, clientOperationId: randomUUID(), body: 'hello' })
  await until('the event', () => stream.types.includes('message.received'))
  expect(performance.now() - began).toBeLessThan(500)
})

/** Opens the inbox of a console and the feed of a service. Returns the ends of both streams. */
async function openOperatorStreams({ core }: Started, workspaceId: string) {
  const scopes = [...operatorScopes]
  const token = await accessOf(core).issue({ subject: 'ada', scopes, workspaceId })
  const caller = await accessOf(core).authenticate(`Bearer ${token}`, 'messages:read')
  const { secret: linkSecret } = await createSignInLink(core, caller, { workspaceId, scopes: [] })
  const { secret } = await signIn(core, { linkSecret }, 'Ada', '')
  const stopped = new AbortController()
  onTestFinished(() => stopped.abort())
  const { signal } = stopped
  const headers = { authorization: `Console ${secret}` }
  const inbox = createClient(MessagingService, transportTo(core)).watchConversations({}, { headers, signal })
  const feed = createClient(EventsService, createAuthorizedTransport(transportTo(core), token))
  const ends = [inbox, feed.followEvents({}, { signal })].map(async (stream) => {
    try {
      for await (const _ of stream);
    } catch (error) {
      return (error as ConnectError).rawMessage
    }
  })
  await delay(10) // The first frames.
  return { token, ends: Promise.all(ends) }
}

// Each core looks for missed events and messages every 3 s, and renews the presence of the operator every 6 s.
it('an idle core with open streams of a visitor, an inbox and a feed sends at most 3.5 commands a second', async () => {
  const one = await startCore()
  const { workspaceId } = await newScene(one, one)
  await openOperatorStreams(one, workspaceId)
  await delay(5_000)
  const taking = vi.spyOn(Collection.prototype, 'findOneAndUpdate')
  const before = await one.sent()
  await delay(minutes * 60_000)
  const after = await one.sent()
  const taken = await Promise.all(taking.mock.results.map(({ value }) => value))
  taking.mockRestore()
  expect(taken.filter((document) => document !== null)).toEqual([])
  expect((after.all - before.all) / minutes / 60).toBeLessThanOrEqual(3.5)
  // The operator in the inbox is noted every 6 seconds.
  expect((after.writes - before.writes) / minutes / 60).toBeLessThanOrEqual(0.3)
})

it('the revocation of a token ends its streams on a core that rests within a second', { retry: 2 }, async () => {
  const [one, two] = [await startCore(), await startCore()]
  const { workspaceId } = await newScene(one, one)
  const { token, ends } = await openOperatorStreams(two, workspaceId)
  await one.rests()
  const began = performance.now()
  await revokeToken(one.core, tokenIdOf(token), { subject: 'eve' })
  expect(await ends).toEqual(['Unauthenticated', 'Unauthenticated'])
  expect(performance.now() - began).toBeLessThan(1_500)
})
