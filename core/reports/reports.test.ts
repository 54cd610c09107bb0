import { createClient } from '@connectrpc/connect'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  type GetReportRequest,
  MessagingService,
  type Report,
  type ReportRow,
} from '#proto/messaging/v1/messaging_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { inboxOf } from '../conversations/inbox.ts'
import { addTag } from '../conversations/tags.ts'
import type { Core } from '../core.ts'
import { hideFromAll } from '../privacy/data-store.ts'
import { say } from '../test/bots.ts'
import { bareCore } from '../test/core-with.ts'
import { answer, send, testCores } from '../test/cores.ts'
import { openMeasuredClient } from '../test/query-cost.ts'
import { newWorkspace, type Story, tell } from '../test/told-conversations.ts'
import { transportTo } from '../test/transports.ts'
import { accessOf } from '../transport/caller.ts'
import { reportStoreOf } from './report-store.ts'
import { readReport } from './reports.ts'
import { usualAnswersOf } from './usual-answer.ts'

const cores = testCores({ count: 2, started: false })
let messaging: ReturnType<typeof createClient<typeof MessagingService>>
beforeAll(() => {
  messaging = createClient(MessagingService, transportTo(cores.other))
})

type Query = Partial<Pick<GetReportRequest, 'workspaceId' | 'firstDay' | 'days' | 'timeZone'>>

async function reportFor(workspaceId: string, query: Query = {}, scopes = ['messages:read']) {
  const authorization = `Bearer ${await accessOf(cores.core).issue({ subject: 'test', scopes, workspaceId })}`
  let report: Report | undefined
  for await (const { frame } of messaging.getReport(query, { headers: { authorization } }))
    if (frame.case === 'report') report = frame.value
  return report!
}

const told = (workspaceId: string, story: Story) => tell(cores.core, workspaceId, story)
const filled = (rows: ReportRow[]) =>
  rows.filter(({ conversations }) => conversations > 0).map(({ name, conversations }) => `${name} ${conversations}`)

describe('the report', () => {
  it('counts conversations by the day and hour of the first message in the time zone, and by tag', async () => {
    const workspaceId = newWorkspace()
    await told(workspaceId, { begunAt: '2026-03-01T22:59:59Z', tags: ['early'] })
    await told(workspaceId, { begunAt: '2026-03-01T23:00:00Z', tags: ['vip', 'refund'] })
    await told(workspaceId, { begunAt: '2026-03-08T22:59:59Z', tags: ['vip'] })
    await told(workspaceId, { begunAt: '2026-03-08T23:00:00Z', tags: ['late'] })
    // A conversation that began earlier and goes on is no new conversation.
    await told(workspaceId, { begunAt: '2026-02-20T10:00:00Z', visitor: [900_000] })
    const report = await reportFor(workspaceId, { firstDay: '2026-03-02', timeZone: 'Europe/Vienna' })
    expect(report).toMatchObject({ firstDay: '2026-03-02', total: { conversations: 2, answered: 0 } })
    expect(report.total).not.toHaveProperty('medianAnswerSeconds')
    expect([report.byDay.length, report.byHour.length]).toEqual([7, 24])
    expect(filled(report.byDay)).toEqual(['2026-03-02 1', '2026-03-08 1'])
    expect(filled(report.byHour)).toEqual(['00 1', '23 1'])
    expect(filled(report.byTag)).toEqual(['vip 2', 'refund 1'])
    expect(JSON.stringify(report, (_, value) => (typeof value === 'bigint' ? Number(value) : value))).not.toContain(
      'private',
    )
  })

  it('lists tags of equal number by name, in whatever order their conversations began', async () => {
    const workspaceId = newWorkspace()
    for (const tag of ['zoo', 'apple', 'mango'])
      await told(workspaceId, { begunAt: '2026-03-02T10:00:00Z', tags: [tag] })
    const { byTag } = await reportFor(workspaceId, { firstDay: '2026-03-02', days: 1 })
    expect(filled(byTag)).toEqual(['apple 1', 'mango 1', 'zoo 1'])
  })

  it('measures from the first message of the visitor to the first answer of an agent, not of a bot', async () => {
    const workspaceId = newWorkspace()
    const begunAt = '2026-03-02T10:00:00Z'
    for (const seconds of [10, 20, 30, 40, 50, 60, 70, 80, 90, 1000])
      await told(workspaceId, { begunAt, bot: [1], agent: [seconds, seconds + 5], visitor: [2] })
    // An agent who writes first has not answered, and a bot alone never answers.
    await told(workspaceId, { begunAt, agent: [-50] })
    await told(workspaceId, { begunAt, agent: [-50, 50], tags: ['proactive'] })
    await told(workspaceId, { begunAt, bot: [3] })
    const { total, byTag } = await reportFor(workspaceId, { firstDay: '2026-03-02', days: 1 })
    expect(total).toMatchObject({ conversations: 13, answered: 11, medianAnswerSeconds: 50, p90AnswerSeconds: 90 })
    expect(byTag).toMatchObject([{ name: 'proactive', answered: 1, medianAnswerSeconds: 50 }])
  })

  it('counts ratings with a score from 1 to 5, and ignores malformed ones', async () => {
    const workspaceId = newWorkspace()
    const begunAt = '2026-03-02T10:00:00Z'
    await told(workspaceId, { begunAt, scores: [5, 2], tags: ['vip'] })
    await told(workspaceId, { begunAt, scores: [4, 0, 6, 2.5, 'five', null, undefined] })
    const { total, byTag } = await reportFor(workspaceId, { firstDay: '2026-03-02', days: 1 })
    expect(total).toMatchObject({ conversations: 2, ratings: 3 })
    expect(total!.meanRating).toBeCloseTo(11 / 3)
    expect(byTag).toMatchObject([{ name: 'vip', ratings: 2, meanRating: 3.5 }])
  })

  it('has the hours of a day on which the clock changes', async () => {
    const workspaceId = newWorkspace()
    for (const begunAt of [
      '2026-10-25T00:30:00Z',
      '2026-10-25T01:30:00Z',
      '2026-10-25T22:59:00Z',
      '2026-10-25T23:00:00Z',
    ])
      await told(workspaceId, { begunAt })
    const report = await reportFor(workspaceId, { firstDay: '2026-10-25', days: 1, timeZone: 'Europe/Vienna' })
    expect(filled(report.byHour)).toEqual(['02 2', '23 1'])
  })

  it('reads real conversations of the last seven days, on another core, and none of other workspaces', async () => {
    const at = await cores.newSite()
    const visitor = await cores.newVisitor(at)
    await send(cores.core, visitor, 'question')
    await say(cores.core, visitor, 'bot-answer')
    await answer(cores.core, visitor, 'answer')
    await addTag(cores.core, visitor.conversationId, 'vip', undefined)
    await cores.newVisitor(at)
    await inboxOf(cores.core).noted()
    const { total, byDay, byTag } = await reportFor(at.workspaceId)
    expect(total).toMatchObject({ conversations: 1, answered: 1, ratings: 0 })
    expect(byDay.at(-1)).toMatchObject({ name: new Date().toISOString().slice(0, 10), conversations: 1 })
    expect(byTag).toMatchObject([{ name: 'vip', conversations: 1 }])
    expect((await reportFor(newWorkspace())).total).toMatchObject({ conversations: 0 })
    const foreign = reportFor((await cores.newSite()).workspaceId, { workspaceId: at.workspaceId })
    await expect(foreign).rejects.toMatchObject({ rawMessage: 'NotFound' })
    await expect(reportFor(at.workspaceId, {}, ['leads:read'])).rejects.toMatchObject({
      rawMessage: 'PermissionDenied',
    })
    await hideFromAll(cores.core, { conversationIds: [visitor.conversationId], leadIds: [] })
    expect((await reportFor(at.workspaceId)).total).toMatchObject({ conversations: 0 })
  })

  it.each([
    { days: 0 },
    { days: 36 },
    { timeZone: 'Mars/Olympus' },
    { timeZone: '+02:00' },
    { timeZone: 'x'.repeat(10_000) },
    { firstDay: '2026-02-30' },
    { firstDay: 'yesterday' },
    { firstDay: '' },
  ])('is refused for %o', async (query) => {
    await expect(reportFor(newWorkspace(), query)).rejects.toMatchObject({ rawMessage: 'ValidationFailed' })
  })

  itLong('counts each conversation once, also if a message moves it while the report is read in parts', async () => {
    const workspaceId = newWorkspace()
    const story = { begunAt: '2026-03-02T10:00:00Z' }
    for (let count = 0; count < 450; count += 1) await told(workspaceId, story)
    const { conversations } = cores.core.database.collections
    const store = reportStoreOf(cores.core)
    let parts = 0
    async function* active(...query: Parameters<typeof store.active>) {
      for await (const part of store.active(...query)) {
        parts += 1
        yield part
        // Conversations that were read move to the end of the order.
        const moved = { _id: { $in: part.slice(0, 5).map(({ conversationId }) => conversationId) } }
        if (parts < 3) await conversations.updateMany(moved, { $set: { lastMessageAt: new Date('2026-03-03') } })
      }
    }
    const reports = reporting({ ...store, active })
    expect((await lastOf(reports, { workspaceId, firstDay: '2026-03-02', days: 1 }))?.total.conversations).toBe(450)
    expect(parts).toBeGreaterThan(2)
  })
})

/** Creates a core that reads reports with these queries. */
function reporting(store: Pick<ReturnType<typeof reportStoreOf>, 'active' | 'read'>) {
  const core = bareCore({ now: Date.now })
  reportStoreOf.set(core, store as never)
  return core
}

/** Returns the report at the end of all parts. */
async function lastOf(core: Core, query: Parameters<typeof readReport>[1], signal = AbortSignal.timeout(60_000)) {
  for await (const part of readReport(core, query, signal)) if ('total' in part) return part
  return undefined
}

describe('a core', () => {
  const query = { workspaceId: 'ws_1', firstDay: '2026-03-02' }

  it('refuses a report of more than 250,000 conversations', async () => {
    let next = 0
    async function* active() {
      for (; ; next += 200)
        yield Array.from({ length: 200 }, (_, index) => ({ conversationId: `cnv_${next + index}`, tags: [] }))
    }
    const reports = reporting({ active, read: async () => [] })
    await expect(lastOf(reports, query)).rejects.toMatchObject({ issues: [{ path: '/days', rule: 'maxItems' }] })
    expect(next).toBeLessThan(251_000)
  })

  it('reads one report of a workspace at once, refuses too many, and forgets those whose caller left', async () => {
    let running = 0
    const gate = Promise.withResolvers<void>()
    async function* active() {
      running += 1
      await gate.promise
      yield []
    }
    const reports = reporting({ active, read: async () => [] })
    const leaving = new AbortController()
    const first = lastOf(reports, query)
    const left = lastOf(reports, query, leaving.signal)
    const waiting = Array.from({ length: 3 }, () => lastOf(reports, query))
    await expect(lastOf(reports, query)).rejects.toMatchObject({ message: 'ServiceUnavailable' })
    leaving.abort()
    await expect(left).rejects.toThrow()
    expect(running).toBe(1)
    gate.resolve()
    for (const report of await Promise.all([first, ...waiting])) expect(report!.total.conversations).toBe(0)
    expect(running).toBe(4)
  })

  it('finishes a report whose caller does not read, so that another can be read', async () => {
    const reports = reporting({ active: async function* () {}, read: async () => [] })
    const stalled = Array.from({ length: 3 }, (_, at) =>
      readReport(reports, { ...query, workspaceId: `ws_${at}` }, AbortSignal.timeout(60_000))[Symbol.asyncIterator](),
    )
    await Promise.all(stalled.map((parts) => parts.next()))
    expect(await lastOf(reports, query)).toBeDefined()
    for (const parts of stalled) await parts.return!()
  })
})

it('a part of a report reads only the events of its conversations', async () => {
  const workspaceId = newWorkspace()
  for (let count = 0; count < 3; count += 1) await told(workspaceId, { begunAt: '2026-03-02T10:00:00Z', agent: [5] })
  const measured = await openMeasuredClient(cores.uri, cores.name)
  const store = reportStoreOf(
    bareCore({
      db: { conversations: measured.db.collection('conversations'), events: measured.db.collection('events') },
    }),
  )
  const cost = { calls: 0, keys: 0, documents: 0 }
  const range = { since: new Date('2026-03-02'), before: new Date('2026-03-03') }
  const { sent, answer: found } = await measured.commandsOf(async () => {
    const parts = []
    for await (const part of store.active(workspaceId, range)) parts.push(...part)
    return parts
  })
  await measured.add(cost, sent)
  await measured.add(cost, (await measured.commandsOf(() => store.read(found.map((one) => one.conversationId)))).sent)
  expect(cost.documents).toBe(3 + 6)
  await measured.close()
})

describe('usual answer', () => {
  describe('the usual time to answer', () => {
    let now = Date.parse('2026-03-08T12:00:00Z')
    const usual = (store: Pick<ReturnType<typeof reportStoreOf>, 'newest' | 'read'> = reportStoreOf(cores.core)) => {
      const warnings: object[] = []
      const core = bareCore({ logger: { warn: (fields: object) => warnings.push(fields) }, now: () => now })
      reportStoreOf.set(core, store as never)
      return { warnings, ...usualAnswersOf(core) }
    }
    const tellAnswered = async (workspaceId: string, seconds: number[], begunAt = '2026-03-08T10:00:00Z') => {
      for (const each of seconds) await tell(cores.core, workspaceId, { begunAt, agent: [each] })
    }

    it('is that of half of the newest conversations, once 10 were answered', async () => {
      const workspaceId = newWorkspace()
      await tellAnswered(workspaceId, Array(20).fill(5), '2026-02-20T10:00:00Z')
      await tellAnswered(workspaceId, [10, 20, 30, 61, 61, 700, 800, 900, 1000])
      await tell(cores.core, workspaceId, { begunAt: '2026-03-08T11:00:00Z' })
      const { newest, read } = reportStoreOf(cores.core)
      let readings = 0
      const few = usual({ newest, read: (ids) => read(ids).finally(() => (readings += 1)) })
      expect(few.minutesOf(workspaceId)).toBeUndefined()
      await until('nine answers to be read', () => readings === 1)
      await tellAnswered(workspaceId, [40])
      const { minutesOf } = usual()
      expect(minutesOf(workspaceId)).toBeUndefined()
      expect(await until('the time to be known', () => minutesOf(workspaceId))).toBe(2)
      // What was known before the tenth answer holds for an hour.
      expect(few.minutesOf(workspaceId)).toBeUndefined()
      now += 3_600_000
      await until('the time to be read again', () => few.minutesOf(workspaceId))
    })

    it('is left out above a day, and in other workspaces', async () => {
      const workspaceId = newWorkspace()
      await tellAnswered(workspaceId, Array(12).fill(90_000), '2026-03-06T08:00:00Z')
      const quick = newWorkspace()
      await tellAnswered(quick, Array(12).fill(0))
      const { minutesOf } = usual()
      for (const each of [workspaceId, newWorkspace(), quick]) expect(minutesOf(each)).toBeUndefined()
      expect(await until('the last of the three to be read', () => minutesOf(quick))).toBe(1)
      expect(minutesOf(workspaceId)).toBeUndefined()
    })

    it('is read once for many requests, and a failure neither reaches them nor stops later readings', async () => {
      let calls = 0
      const store = {
        newest: async () => {
          calls += 1
          throw new RangeError('private')
        },
        read: async () => [],
      }
      const { minutesOf, warnings } = usual(store)
      for (let count = 0; count < 100; count += 1) expect(minutesOf('ws_1')).toBeUndefined()
      minutesOf('ws_2')
      await until('both readings', () => warnings.length === 2)
      expect([calls, warnings]).toEqual([2, [{ reason: 'RangeError' }, { reason: 'RangeError' }]])
    })
  })
})
