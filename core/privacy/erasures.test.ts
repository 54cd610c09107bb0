import { randomUUID } from 'node:crypto'
import { createClient } from '@connectrpc/connect'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { EventsService } from '#proto/events/v1/events_pb.js'
import { imageOf } from '../../test/support/images.ts'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { acknowledgeScreenshot, requestScreenshot } from '../commands/commands.ts'
import { uploadScreenshot } from '../commands/screenshots.ts'
import { inboxOf } from '../conversations/inbox.ts'
import { sendAsAgent } from '../conversations/messages.ts'
import { setTypingOfVisitor } from '../conversations/typing.ts'
import { captureLead, submitForm } from '../deliveries/lead-capture.ts'
import { watchConversations } from '../rpc/watch-conversations.ts'
import { hasFailed, testCores } from '../test/cores.ts'
import { transportTo } from '../test/transports.ts'
import { site } from '../test/visitor-credentials.ts'
import { acceptForms, finishErasures, idsOf, placesOfTexts, plantMarks, visitorOf } from '../test/visitor-marks.ts'
import { accessOf } from '../transport/caller.ts'
import { reportPage } from '../visitors/sessions.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import { eraseVisitor, findErasure } from './erasures.ts'
import { beginRemoval, runDueRemovals } from './removals.ts'
import { exportVisitor, visitorOfSubject } from './visitor-data.ts'

const cores = testCores({ count: 2 })
beforeAll(() => acceptForms(cores))

const plant = (kind: { verified: boolean }) => plantMarks(cores, kind)
const placesOf = (texts: string[]) => placesOfTexts(cores, texts)

const workThrough = (core = cores.core) => finishErasures(cores, core)

describe.each(someOf([{ verified: false }, { verified: true }], 1))('the erasure of a visitor (%o)', (kind) => {
  it("leaves none of the visitor's data in any collection", async () => {
    const planted = await plant(kind)
    const other = await plant(kind)
    const traces = [...planted.marks, ...(await idsOf(cores, planted)), planted.created.conversationId]
    // Before the erasure, the scan must find the visitor's data in these collections.
    const before = new Set((await placesOf(traces)).map((place) => place.split(':')[0]))
    for (const name of [
      'sessions',
      'events',
      'conversations',
      'leads',
      'deliveries',
      'commands',
      'screenshots.chunks',
      'idempotency',
    ])
      expect(before).toContain(name)
    const kept = (await placesOf(other.marks)).filter(
      (place) => !place.startsWith('typing') && !place.startsWith('wakeups'),
    )

    const { erasureId } = await eraseVisitor(cores.core, await visitorOf(cores, planted.session), 'desk')
    await workThrough()
    expect(await placesOf(traces)).toEqual([])
    expect(await findErasure(cores.core, erasureId, cores.workspaceId)).toMatchObject({
      stage: 'finished',
      requestedBy: 'desk',
    })
    expect(await placesOf(other.marks)).toEqual(expect.arrayContaining(kept))
  })

  itLong('is finished by another process if the process that runs it dies', async () => {
    await cores.untilOneSurvives(
      async (mortal, writes) => {
        const planted = await plant(kind)
        const traces = [...planted.marks, ...(await idsOf(cores, planted))]
        const visitor = await visitorOf(cores, planted.session)
        // The operator repeats a call that failed.
        const isRefused = await hasFailed(eraseVisitor(mortal, visitor, 'desk'))
        if (isRefused) await eraseVisitor(cores.core, visitor, 'desk')
        const died = isRefused || (await hasFailed(workThrough(mortal)))
        await workThrough()
        expect([writes, await placesOf(traces)]).toEqual([writes, []])
        return died
      },
      { every: 167, everyInLong: 7 },
    )
  })
})

itLong('an erasure while the visitor is active also removes data that is written during the erasure', async () => {
  const { core, cores: all } = cores
  const session = await cores.newSession()
  const { sessionId, conversationId, accessGrant } = session
  const credentials = { accessGrant, origin: site }
  const mark = randomUUID().replaceAll('-', '')
  const { content } = await requestScreenshot(core, { sessionId }, { subject: 'desk' })
  const requestId = content.commandId
  const consent = { credentials, requestId, consent: 'granted', idempotencyKey: 'yes' }
  await acknowledgeScreenshot(core, consent)
  const removed = Promise.withResolvers<void>()
  const upload = uploadScreenshot(
    core,
    { credentials, requestId, contentType: 'image/png', idempotencyKey: 'picture' },
    (async function* () {
      yield Buffer.concat([imageOf('image/png', 100), Buffer.from(mark.repeat(20_000))])
      await removed.promise
      yield Buffer.from(mark.repeat(20_000))
    })(),
  ).catch((error: Error) => error)

  let rejected = 0
  const writers = [...all, ...all].map(async (at) => {
    for (let number = 0; ; number += 1) {
      const attempts = await Promise.allSettled([
        cores.send(session, `${mark} ${number}`, { core: at }),
        setTypingOfVisitor(at, credentials, number % 2 === 0 ? 'started' : 'stopped'),
        reportPage(at, { credentials, pageContext: { url: `${site}/${mark}` } }),
        submitForm(at, { credentials, form: 'offline', fields: { email: mark }, idempotencyKey: randomUUID() }),
        captureLead(
          at,
          { workspaceId: cores.workspaceId, source: 'crm', fields: { note: mark }, conversationId },
          undefined,
        ),
        sendAsAgent(at, { conversationId, clientOperationId: randomUUID(), body: mark }),
        sendAsAgent(at, {
          conversationId,
          clientOperationId: randomUUID(),
          body: mark,
          agent: { displayName: 'Ada' },
        }),
      ])
      if (attempts.every(({ status }) => status === 'rejected')) break
    }
    rejected += 1
  })
  await until('it is under way', async () => (await placesOf([mark])).length > 4)
  await eraseVisitor(core, await visitorOf(cores, session), 'desk')
  cores.advance(3)
  await runDueRemovals(core)
  await Promise.all(writers)
  expect(rejected).toBe(writers.length)
  removed.resolve()
  expect(await upload).toBeInstanceOf(Error)
  for (const each of all) await inboxOf(each).noted()
  await workThrough()
  expect(await placesOf([mark, sessionId, conversationId])).toEqual([])
})

describe('an erased visitor', () => {
  it('gets `session.revoked` on every stream of every core, and later requests are rejected', async () => {
    const [one, two] = cores.cores
    const session = await cores.newSession()
    await cores.send(session, 'hello')
    const streams = [await cores.openStream(session, one), await cores.openStream(session, two)]
    await eraseVisitor(one!, await visitorOf(cores, session), 'desk')
    for (const stream of streams) await until('the end', () => stream.ended)
    for (const { types } of streams) expect(types.at(-1)).toBe('session.revoked')
    await expect(cores.send(session, 'late', { core: one! })).rejects.toThrow('SessionRevoked')
    await until('the other core knows', () => cores.send(session, 'late', { core: two! }).catch(() => true))
    await workThrough()
    for (const core of [one!, two!])
      await until('it is gone everywhere', () =>
        cores.send(session, 'late', { core }).catch(({ message }) => message === 'GrantInvalid'),
      )
    expect(await placesOf([session.sessionId, session.conversationId])).toEqual([])
  })

  // A core finds this only by its check of sessions with streams, which takes seconds.
  itLong('gets `session.revoked` on an open stream when the session is removed without an end event', async () => {
    const session = await cores.newSession()
    const stream = await cores.openStream(session)
    await until('the stream follows', () => stream)
    await cores.core.database.collections.sessions.deleteOne({ _id: session.sessionId })
    await until('the end', () => stream.ended)
    expect(stream.types).toEqual(['session.revoked'])
  })

  itLong('can return as a new visitor', async () => {
    const browser = randomUUID()
    const session = await cores.newSession(cores.core, browser)
    await cores.send(session, 'before')
    await eraseVisitor(cores.core, await visitorOf(cores, session), 'desk')
    cores.advance(3)
    await runDueRemovals(cores.core)
    const again = await cores.newSession(cores.core, browser)
    await cores.send(again, 'after')
    cores.advance(61)
    await runDueRemovals(cores.core)
    expect(await cores.history(again)).toEqual(['after'])
  })

  itLong('has no data left, while other people in the same browser keep their data', async () => {
    const browser = randomUUID()
    const one = await cores.identify(await cores.newSession(cores.core, browser), cores.sign({ sub: randomUUID() }))
    await cores.send(one, 'mine')
    const sub = randomUUID()
    const two = await cores.identify(one, cores.sign({ sub }))
    await cores.send(two, 'theirs')
    const stranger = await cores.newSession()
    await cores.send(stranger, 'elsewhere')
    await eraseVisitor(cores.core, await visitorOf(cores, one), 'desk')
    await workThrough()
    expect(await cores.history(two)).toEqual(['theirs'])
    expect(await cores.history(stranger)).toEqual(['elsewhere'])
    expect(await placesOf([one.sessionId, one.conversationId])).toEqual([])
    const next = await cores.newVerified(sub)
    expect(await cores.history(next)).toEqual(['theirs'])
  })

  itLong('can be erased by the host’s user id, and a second erasure has no effect', async () => {
    const planted = await plant({ verified: true })
    const ids = await idsOf(cores, planted)
    for (let times = 0; times < 2; times += 1) {
      const visitor = await visitorOfSubject(cores.core, cores.workspaceId, planted.externalSubject)
      await eraseVisitor(cores.core, visitor, 'desk')
      await workThrough()
      expect(await placesOf([...planted.marks, ...ids])).toEqual([])
    }
    await expect(visitorOf(cores, planted.session)).rejects.toThrow('NotFound')
  })
})

describe('the export of a visitor', () => {
  it('contains all data of that visitor and of no other, as JSON lines without credentials', async () => {
    const planted = await plant({ verified: true })
    const other = await plant({ verified: true })
    const lines: string[] = []
    for await (const line of exportVisitor(cores.core, await visitorOf(cores, planted.session))) lines.push(line)
    const records = lines.map((line) => JSON.parse(line))
    expect(new Set(records.map(({ kind }) => kind))).toEqual(
      new Set(['session', 'conversation', 'event', 'command', 'screenshot', 'lead', 'delivery']),
    )
    const all =
      lines.join('\n') + records.map(({ data }) => Buffer.from(String(data), 'base64').toString('latin1')).join()
    // Each field of the visitor's data has a unique text (a mark). The export does not contain the
    // marks in `notStored`. The database stores only hashes of idempotency keys and nonces, and
    // only the visitor's latest page.
    const notStored =
      /^(createkey|identifykey|nonce|firstnonce|pagekey|formkey|ratingkey|consentkey|uploadkey|agentoperation|grow\w*operation|created|message)/
    expect(planted.marks.filter((mark) => !notStored.test(mark) && !all.includes(mark))).toEqual([])
    expect(other.marks.filter((mark) => all.includes(mark))).toEqual([])
    expect(all).not.toMatch(/renewal|inputHash|operationKey/)
  })
})

/** Collects what an inbox stream and a feed stream of the other core say. */
async function openStreams(ofWorkspace = cores.workspaceId) {
  const said = { inbox: [] as string[], noted: [] as string[], feed: [] as string[], leads: [] as string[] }
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const inbox = watchConversations(cores.other, { workspaceId: ofWorkspace, scopes: operatorScopes }, stop.signal)
  const client = createClient(EventsService, transportTo(cores.other))
  const token = await accessOf(cores.core).issue({ subject: 'crm', scopes: ['events:read'], workspaceId: ofWorkspace })
  const options = { headers: { authorization: `Bearer ${token}` }, signal: stop.signal }
  let isOpen = false
  void (async () => {
    for await (const { frame } of inbox) {
      if (frame.case === 'removed') said.inbox.push(...frame.value.conversationIds)
      if (frame.case === 'notes') said.noted.push(frame.value.conversationId)
    }
  })()
  void (async () => {
    for await (const page of client.followEvents({}, options)) {
      isOpen = true
      said.feed.push(...page.removedConversationIds)
      said.leads.push(...page.removedLeadIds)
    }
  })().catch(() => {})
  await until('the streams', () => isOpen)
  return said
}

it('an erasure is said to the inboxes and feed readers of its workspace, on every core', async () => {
  const session = await cores.newSession()
  await cores.send(session, 'hello')
  const { conversationId } = session
  const lead = { workspaceId: cores.workspaceId, source: 'crm', fields: { note: 'hello' }, conversationId }
  const leadId = await captureLead(cores.core, lead, undefined)
  const said = await openStreams()
  const elsewhere = await openStreams((await cores.newSite()).workspaceId)
  await eraseVisitor(cores.core, await visitorOf(cores, session), 'desk')
  await until('the inbox frame', () => said.inbox.includes(conversationId))
  await until('the feed frame', () => said.feed.includes(conversationId))
  await until('the lead', () => said.leads.includes(leadId))
  expect([...elsewhere.inbox, ...elsewhere.feed]).toEqual([])
})

it('an old conversation that is removed is said, and listed again if it was used in the meantime', async () => {
  const session = await cores.newSession()
  await cores.send(session, 'hello')
  const { conversationId } = session
  const said = await openStreams()
  const removal = { workspaceId: cores.workspaceId, kind: 'conversations' as const, ids: [conversationId] }
  await beginRemoval(cores.core, removal)
  await until('the inbox frame', () => said.inbox.includes(conversationId))
  cores.advance(120)
  await until('the note frame', () => said.noted.includes(conversationId))
})
