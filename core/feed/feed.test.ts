import { randomUUID } from 'node:crypto'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { createClient } from '@connectrpc/connect'
import { expect, it } from 'vitest'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { type Event, EventsService } from '#proto/events/v1/events_pb.js'
import { PrivacyService } from '#proto/privacy/v1/privacy_pb.js'
import { until } from '../../test/support/until.ts'
import type { RunningCore } from '../context.ts'
import { assignAgent, closeConversation } from '../conversations/assignments.ts'
import { captureLead } from '../deliveries/lead-capture.ts'
import { answer, send, testCores } from '../test/cores.ts'
import { sendFromDyingCores } from '../test/dying-cores.ts'
import { catchUpFeed, flushFeed } from '../test/feed.ts'
import { transportTo } from '../test/transports.ts'
import { accessOf } from '../transport/caller.ts'
import { removeOldEntries } from './feed-log.ts'

const cores = testCores({ count: 2, started: false })
const everything = ['events:read', 'messages:read', 'sessions:read', 'leads:read']

/** Returns a reader of a workspace's feed on a core, as an internal service calls it. */
async function reader(workspaceId: string, core: RunningCore = cores.core, scopes = everything) {
  const client = createClient(EventsService, transportTo(core))
  const token = await accessOf(core).issue({ subject: 'crm', scopes, workspaceId })
  const headers = { authorization: `Bearer ${token}` }
  async function all(cursor = '', types: string[] = []): Promise<Event[]> {
    const events: Event[] = []
    for (let more = true; more; ) {
      const page = await client.listEvents({ cursor, types, limit: 3 }, { headers })
      events.push(...page.events)
      more = page.cursor !== cursor
      cursor = page.cursor
    }
    return events
  }
  return { client, headers, all }
}

const typesOf = (events: Event[]) => events.map(({ type }) => type)
const bodiesOf = (events: Event[]) => events.flatMap(({ message }) => message?.message?.body ?? [])

it('a reader gets the events of a conversation that two cores wrote, in their order', async () => {
  const site = await cores.newSite()
  const visitor = await cores.newVisitor(site)
  await send(cores.core, visitor, 'one')
  await answer(cores.other, visitor, 'two')
  const { conversationId } = visitor
  await assignAgent(cores.other, conversationId, { displayName: 'Ada' }, undefined)
  await closeConversation(cores.core, conversationId, undefined)
  await send(cores.other, visitor, 'three')
  await Promise.all(cores.cores.map((core) => flushFeed(core)))
  for (const core of cores.cores) {
    const { all } = await reader(site.workspaceId, core)
    const events = await all()
    expect(typesOf(events)).toEqual([
      'conversation.created',
      'message.visitor',
      'message.agent',
      'conversation.assigned',
      'conversation.closed',
      'conversation.reopened',
      'message.visitor',
    ])
    expect(bodiesOf(events)).toEqual(['one', 'two', 'three'])
    expect(events[3]?.assignment?.agent?.displayName).toBe('Ada')
    expect(bodiesOf(await all(events[2]!.cursor))).toEqual(['three'])
    expect(typesOf(await all('', ['conversation.closed']))).toEqual(['conversation.closed'])
  }
})

it('a token without the scope of the content gets the ids only', async () => {
  const site = await cores.newSite()
  const visitor = await cores.newVisitor(site)
  await send(cores.core, visitor, 'secret')
  await flushFeed(cores.core)
  const { all } = await reader(site.workspaceId, cores.core, ['events:read'])
  const events = await all()
  expect(events.map(({ conversationId, sequence, message }) => [conversationId, sequence, message])).toEqual([
    [visitor.conversationId, 0, undefined],
    [visitor.conversationId, 1, undefined],
  ])
})

it('a core that dies before it wrote to the feed leaves no event out', async () => {
  const site = await cores.newSite()
  const visitor = await cores.newVisitor(site)
  await send(cores.core, visitor, 'early')
  await sendFromDyingCores(cores, visitor)
  cores.advance(120)
  await catchUpFeed(cores.other)
  const stored = (await cores.log(visitor.conversationId)).flatMap(({ message }) => message?.body ?? [])
  const { all } = await reader(site.workspaceId)
  expect(bodiesOf(await all())).toEqual(stored)
})

it('a waiting reader gets the event of another core as soon as it is in the feed', async () => {
  const site = await cores.newSite()
  const visitor = await cores.newVisitor(site)
  const { client, headers } = await reader(site.workspaceId)
  const waiting = client.listEvents({ waitSeconds: 30 }, { headers })
  await send(cores.core, visitor, 'now')
  await flushFeed(cores.core)
  expect(typesOf((await waiting).events)[0]).toBe('conversation.created')
})

it('a stream sends the events after its cursor, then each new event', async () => {
  const site = await cores.newSite()
  const visitor = await cores.newVisitor(site)
  await send(cores.core, visitor, 'before')
  await flushFeed(cores.core)
  const { client, headers, all } = await reader(site.workspaceId)
  const [created] = await all()
  const stop = new AbortController()
  const bodies: string[] = []
  const reading = (async () => {
    const request = { cursor: created!.cursor }
    for await (const { events } of client.followEvents(request, { headers, signal: stop.signal }))
      bodies.push(...bodiesOf(events))
  })().catch(() => {})
  await until('the first event', () => bodies.length === 1)
  await answer(cores.core, visitor, 'after')
  await flushFeed(cores.core)
  await until('the new event', () => bodies.length === 2)
  stop.abort()
  await reading
  expect(bodies).toEqual(['before', 'after'])
})

it('a cursor whose next events were removed is refused, and the answer names the oldest', async () => {
  const site = await cores.newSite()
  const visitor = await cores.newVisitor(site)
  for (const text of ['one', 'two', 'three']) await send(cores.core, visitor, text)
  await flushFeed(cores.core)
  const { client, headers, all } = await reader(site.workspaceId)
  const [created, first, , last] = await all()
  await removeOldEntries(cores.core, new Date(cores.now() + 1))
  const issuesOf = async (cursor: string) => {
    const error = await client.listEvents({ cursor }, { headers }).then(
      () => undefined,
      (reason) => reason,
    )
    return error?.findDetails(ErrorInfoSchema)[0]?.issues.map(({ path, rule }: never) => `${path} ${rule}`)
  }
  const [issue] = await issuesOf(created!.cursor)
  expect(issue).toMatch(/^\/cursor oldest \S+$/)
  expect(await issuesOf(first!.cursor)).toEqual([issue])
  expect(bodiesOf(await all(issue.split(' ')[2]))).toEqual(['three'])
  expect(await issuesOf('yesterday')).toEqual(['/cursor format'])
  await send(cores.core, visitor, 'four')
  await flushFeed(cores.core)
  expect(bodiesOf(await all(last!.cursor))).toEqual(['four'])
})

it('a cursor of another workspace, or after the last event, is refused', async () => {
  const [own, other] = [await cores.newSite(), await cores.newSite()]
  const visitor = await cores.newVisitor(own)
  for (const text of ['one', 'two']) await send(cores.core, visitor, text)
  await send(cores.core, await cores.newVisitor(other), 'elsewhere')
  await flushFeed(cores.core)
  const { client, headers, all } = await reader(own.workspaceId)
  const last = (await all()).at(-1)!.cursor
  const elsewhere = (await (await reader(other.workspaceId)).all()).at(-1)!.cursor
  const beyond = last.replace(/\d+$/, (number) => `${Number(number) + 1}`)
  const refused = { rule: 'cursor', path: '/cursor' }
  for (const cursor of [elsewhere, elsewhere.replace(/\d+$/, '0'), beyond, last.replace(/\d+$/, '999999999999999')]) {
    for (const call of [
      async () => client.listEvents({ cursor }, { headers }),
      async () => client.listEvents({ cursor, waitSeconds: 30 }, { headers }),
      async () => {
        for await (const _ of client.followEvents({ cursor }, { headers })) return
      },
    ]) {
      const error = await call().then(
        () => undefined,
        (reason) => reason,
      )
      expect(error?.findDetails(ErrorInfoSchema)[0]?.issues, cursor).toMatchObject([refused])
    }
  }
  expect((await client.listEvents({ cursor: last }, { headers })).cursor).toBe(last)
})

it('the events of an erased visitor are no longer read, and others keep their cursors', async () => {
  const site = await cores.newSite()
  const [gone, stays] = [await cores.newVisitor(site), await cores.newVisitor(site)]
  await send(cores.core, gone, 'gone')
  await flushFeed(cores.core)
  await send(cores.core, stays, 'stays')
  await flushFeed(cores.core)
  const { all } = await reader(site.workspaceId)
  const before = await all()
  const token = await accessOf(cores.core).issue({
    subject: 'desk',
    scopes: ['visitors:erase'],
    workspaceId: site.workspaceId,
  })
  const privacy = createClient(PrivacyService, transportTo(cores.core))
  const visitor = { by: { case: 'sessionId' as const, value: gone.sessionId } }
  await privacy.eraseVisitor({ visitor }, { headers: { authorization: `Bearer ${token}` } })
  expect(bodiesOf(await all())).toEqual(['stays'])
  expect(bodiesOf(await all(before[0]!.cursor))).toEqual(['stays'])
})

it('a captured lead is in the feed once, also if a core dies between any two writes', async () => {
  const { workspaceId } = await cores.newSite()
  const captured: string[] = []
  await cores.untilOneSurvives(async (mortal) => {
    let died = false
    const note = () => {
      died = true
      return ''
    }
    const lead = { workspaceId, source: randomUUID(), fields: { email: 'a@example.org' } }
    await captureLead(mortal, lead, undefined).catch(note)
    await flushFeed(mortal).catch(note)
    return died
  })
  await flushFeed(cores.other)
  for await (const { _id } of cores.core.database.collections.leads.find({ workspaceId })) captured.push(_id)
  const { all } = await reader(workspaceId)
  const events = await all()
  expect(captured).not.toEqual([])
  expect(events.map(({ leadId }) => leadId).toSorted()).toEqual(captured.toSorted())
  expect(events[0]?.lead?.fields).toEqual({ email: 'a@example.org' })
})

it('a visitor who identifies has not left, and one whose session is closed has', async () => {
  const site = await cores.newSite()
  const visitor = await cores.newVisitor(site)
  await send(cores.core, visitor, 'hello')
  const verified = await cores.identify(visitor, site.sign({ sub: 'customer-1' }))
  await flushFeed(cores.core)
  const { all } = await reader(site.workspaceId)
  const types = ['visitor.identified', 'visitor.left']
  expect(typesOf(await all('', types))).toEqual(['visitor.identified'])
  // The end of a session is written to the log only if the session has an open stream.
  await cores.openStream(verified)
  await cores.close(verified)
  const ends = async () => (await cores.log(verified.conversationId)).some(({ type }) => type === 'session.closed')
  await until('the end in the log', ends)
  await flushFeed(cores.core)
  const left = (await all('', types)).filter(({ type }) => type === 'visitor.left')
  expect(left.map(({ visitor: of }) => [of?.sessionId, of?.reason])).toEqual([[verified.sessionId, 'closed']])
})

it('a reader without a cursor begins at the given time', async () => {
  const site = await cores.newSite()
  const visitor = await cores.newVisitor(site)
  const { client, headers } = await reader(site.workspaceId)
  const since = async (at: number) => {
    const { events, cursor } = await client.listEvents({ since: timestampFromMs(at) }, { headers })
    return { bodies: bodiesOf(events), cursor }
  }
  expect((await since(cores.now())).bodies).toEqual([])
  const times: number[] = []
  for (const text of ['one', 'two', 'three']) {
    cores.advance(60)
    times.push(cores.now())
    await send(cores.core, visitor, text)
    await flushFeed(cores.core)
  }
  expect(await Promise.all(times.map(async (at) => (await since(at)).bodies))).toEqual([
    ['one', 'two', 'three'],
    ['two', 'three'],
    ['three'],
  ])
  expect((await since(0)).bodies).toEqual(['one', 'two', 'three'])
  const end = await since(cores.now() + 60_000)
  expect(end.bodies).toEqual([])
  await send(cores.core, visitor, 'four')
  await flushFeed(cores.core)
  const next = await client.listEvents({ cursor: end.cursor, since: timestampFromMs(0) }, { headers })
  expect(bodiesOf(next.events)).toEqual(['four'])
})

it('reads in a place of paged reads, and waits without one', async () => {
  const site = await cores.newSite()
  const { client, headers } = await reader(site.workspaceId)
  await send(cores.core, await cores.newVisitor(site), 'one')
  await flushFeed(cores.core)
  const places = await Promise.all(Array.from({ length: 4 }, () => cores.core.reads.enter()))
  let isAnswered = false
  const first = client.listEvents({}, { headers }).finally(() => {
    isAnswered = true
  })
  const other = await reader(site.workspaceId, cores.other)
  for (let reads = 0; reads < 3; reads++) await other.all()
  expect(isAnswered).toBe(false)
  for (const place of places.splice(0)) place.leave()
  const { cursor } = await first
  const waiting = Array.from({ length: 5 }, () =>
    client.listEvents({ cursor, types: ['lead.captured'], waitSeconds: 30 }, { headers }),
  )
  for (let read = 0; read < 20; read++) (await cores.core.reads.enter()).leave()
  await captureLead(cores.core, { workspaceId: site.workspaceId, source: 'test', fields: {} }, undefined)
  await flushFeed(cores.core)
  for (const { events } of await Promise.all(waiting)) expect(typesOf(events)).toEqual(['lead.captured'])
})
