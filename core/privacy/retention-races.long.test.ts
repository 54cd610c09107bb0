import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { isLong, runs } from '../../test/support/is-long.ts'
import { testClient } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import { findSession } from '../bans/bans.ts'
import type { RunningCore } from '../context.ts'
import { inboxOf } from '../conversations/inbox.ts'
import { listMessages, sendAsAgent } from '../conversations/messages.ts'
import { captureLead, submitForm } from '../deliveries/lead-capture.ts'
import { listSubscriptions, updateSubscription } from '../deliveries/subscriptions.ts'
import { getLead } from '../leads/leads.ts'
import type { SessionContent } from '../sessions/model.ts'
import { hasFailed, newSubject, testCores } from '../test/cores.ts'
import { findOverdue, observeQueries, sweepAll } from '../test/retention-rules.ts'
import { credentialsOf } from '../test/visitor-credentials.ts'
import { acceptForms, idsOf, placesOfTexts, plantMarks } from '../test/visitor-marks.ts'
import type { WorkspaceSettings } from '../workspaces/model.ts'
import { updateWorkspace } from '../workspaces/workspaces.ts'
import { deleteObject } from './deletions.ts'
import { runDueRemovals } from './removals.ts'
import { sweepOldData } from './retention.ts'

const cores = testCores({ started: false, count: 2 })
beforeAll(() => acceptForms(cores))
beforeEach(() => keep({ conversations: 30, leads: null, emptySessions: null }))

const days = (count: number) => cores.advance(count * 86_400)
const keep = (retention: WorkspaceSettings['retention']) =>
  updateWorkspace(cores.core, cores.workspaceId, { retention })
const agentSend = (core: RunningCore, conversationId: string, body: string) =>
  sendAsAgent(core, { conversationId, clientOperationId: randomUUID(), body })

/** Creates a verified visitor with a message that is older than allowed. */
async function newOldConversation() {
  const sub = newSubject()
  const session = await cores.newVerified(sub)
  await cores.send(session, `old ${sub}`)
  await inboxOf(cores.core).noted()
  return { sub, session }
}

const bodiesOf = async (conversationId: string) =>
  (await listMessages(cores.core, conversationId, {})).messages.map(({ message }) => message?.body)

describe('a message that is acknowledged during a sweep', () => {
  it('is still in its conversation after the sweep, for any order of database calls', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.constantFrom('agent', 'visitor', 'lead', 'second sweep', 'policy'), { minLength: 1, maxLength: 3 }),
        async (scheduler, actors) => {
          const { sub, session } = await newOldConversation()
          const { conversationId } = session
          days(31)
          await updateWorkspace(cores.core, cores.workspaceId, { name: 'due now' })
          const acknowledged: { conversationId: string; body: string }[] = []
          const leads: string[] = []
          const calls: Record<(typeof actors)[number], (core: RunningCore) => Promise<unknown>> = {
            async agent(core) {
              const body = `agent ${randomUUID()}`
              await agentSend(core, conversationId, body)
              acknowledged.push({ conversationId, body })
            },
            async visitor(core) {
              const returned = await cores.newVerified(sub, core)
              const body = `visitor ${randomUUID()}`
              await cores.send(returned, body, { core })
              acknowledged.push({ conversationId: returned.conversationId, body })
            },
            async lead(core) {
              const lead = { workspaceId: cores.workspaceId, source: 'crm', fields: { note: 'x' }, conversationId }
              leads.push(await captureLead(core, lead, undefined))
            },
            'second sweep': (core) => sweepOldData(core),
            policy: (core) => updateWorkspace(core, cores.workspaceId, { retention: { conversations: 40 } }),
          }
          const running = actors.map((actor, index) =>
            calls[actor](cores.scheduledCore(scheduler, { name: `${actor} ${index}` })).catch(() => {}),
          )
          const sweeping = sweepOldData(cores.scheduledCore(scheduler, { name: 'sweep' }))
          await scheduler.waitFor(Promise.all([sweeping, ...running]))
          await sweepAll(cores)
          for (const { conversationId: id, body } of acknowledged) expect(await bodiesOf(id)).toContain(body)
          for (const leadId of leads) expect(await getLead(cores.core, leadId, undefined)).toBeDefined()
          if (actors.includes('policy')) expect(await bodiesOf(conversationId)).toContain(`old ${sub}`)
          expect(await findOverdue(cores)).toEqual([])
          await keep({ conversations: 30 })
        },
      ),
      runs(60, 20),
    )
  })

  it('is kept even if the agent’s call read the conversation before the sweep hid it', async () => {
    const { session } = await newOldConversation()
    const { conversationId } = session
    days(31)
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 8 }), async (calls) => {
        const scheduler = fc.sample(fc.scheduler(), 1)[0]!
        const body = randomUUID()
        let isOver = false
        const sending = agentSend(cores.scheduledCore(scheduler), conversationId, body).finally(() => (isOver = true))
        // Pauses the agent's call after this number of database calls.
        for (let call = 0; call < calls && !isOver; call += 1) {
          await until('its next call', () => scheduler.count() > 0 || isOver)
          if (!isOver) await scheduler.waitOne()
        }
        await sweepOldData(cores.core)
        await scheduler.waitFor(sending)
        await sweepAll(cores)
        expect(await bodiesOf(conversationId)).toContain(body)
        days(31)
      }),
      runs(20),
    )
  })
})

describe('a sweep', () => {
  it('is finished by another process if its process dies between two writes', async () => {
    const lost: unknown[] = []
    await cores.untilOneSurvives(
      async (mortal, writes) => {
        const planted = await plantMarks(cores, { verified: true })
        await inboxOf(cores.core).noted()
        const silent = await cores.newSession()
        const ids = [...(await idsOf(cores, planted)), silent.sessionId, silent.conversationId]
        await keep({ leads: 20 })
        days(32)
        const died = await hasFailed(sweepAll(cores, mortal))
        await sweepAll(cores)
        days(1)
        await sweepAll(cores)
        const gone = await placesOfTexts(cores, [...planted.marks, ...ids])
        if (gone.length > 0) lost.push([writes, gone])
        return died
      },
      { every: 251, everyInLong: 7 },
    )
    expect(lost).toEqual([])
    expect(await findOverdue(cores)).toEqual([])
    expect(await cores.core.database.collections.removals.countDocuments()).toBe(0)
  })

  it('removes the old conversations and keeps the young ones when it runs on two cores at once', async () => {
    const old = await Promise.all(Array.from({ length: isLong ? 30 : 8 }, newOldConversation))
    days(20)
    const young = await Promise.all(Array.from({ length: isLong ? 5 : 2 }, newOldConversation))
    days(11)
    for (const seconds of [0, 121, 31, 121, 31]) {
      cores.advance(seconds)
      await Promise.all(
        cores.cores.map(async (core) => {
          await sweepOldData(core)
          await runDueRemovals(core)
        }),
      )
    }
    await sweepAll(cores)
    for (const { session, sub } of young) expect(await bodiesOf(session.conversationId)).toEqual([`old ${sub}`])
    for (const { session } of old) await expect(bodiesOf(session.conversationId)).rejects.toThrow('NotFound')
    expect(await findOverdue(cores)).toEqual([])
  })
})

describe('after random calls and a sweep', () => {
  const periods = fc.record({
    conversations: fc.integer({ min: 0, max: 6 }),
    leads: fc.integer({ min: 0, max: 6 }),
    emptySessions: fc.integer({ min: 0, max: 3 }),
    audit: fc.integer({ min: 0, max: 6 }),
    heldDeliveries: fc.integer({ min: 0, max: 6 }),
  })
  const step = fc.record({
    hours: fc.integer({ min: 0, max: 40 }),
    person: fc.integer({ min: 0, max: 2 }),
    action: fc.constantFrom('visit', 'login', 'send', 'answer', 'form', 'lead', 'hold', 'release', 'sweep'),
  })

  it('no document is older than allowed, and no younger conversation, lead or session is missing', async () => {
    await fc.assert(
      fc.asyncProperty(periods, fc.array(step, { minLength: 3, maxLength: 14 }), async (retention, steps) => {
        await keep(retention)
        const { core, workspaceId } = cores
        const { page } = await listSubscriptions(core, { workspaceId, listed: 'subscriptions' })
        const { subscriptionId } = page[0]!.subscription
        const people = [0, 1, 2].map(() => ({ browser: randomUUID(), sub: newSubject() }))
        const last = new Map<number, SessionContent>()
        for (const { hours, person, action } of steps) {
          cores.advance(hours * 3_600)
          const { browser, sub } = people[person]!
          const session = last.get(person)
          const act = async () => {
            if (action === 'visit') last.set(person, await cores.newSession(core, browser))
            if (action === 'login')
              last.set(person, await cores.identify(await cores.newSession(core, browser), cores.sign({ sub })))
            if (action === 'send' && session) await cores.send(session, 'hello')
            if (action === 'answer' && session) await agentSend(core, session.conversationId, 'hello')
            if (action === 'form' && session)
              await submitForm(core, {
                credentials: credentialsOf(session),
                form: 'offline',
                fields: { email: 'x' },
                idempotencyKey: randomUUID(),
              })
            if (action === 'lead') await captureLead(core, { workspaceId, source: 'crm', fields: {} }, undefined)
            if (action === 'hold' || action === 'release') {
              const status = action === 'hold' ? ('disabled' as const) : ('enabled' as const)
              await updateSubscription(core, subscriptionId, { status }, { subject: 'desk' })
            }
            if (action === 'sweep') await sweepAll(cores)
          }
          // Ignore the errors of calls with an ended session.
          await act().catch(() => {})
          await inboxOf(core).noted()
        }
        const db = testClient().db(cores.name)
        const ids = async () => {
          const all = ['conversations', 'leads', 'sessions'].map(async (collection) =>
            (await db.collection(collection).find().toArray()).map(({ _id }) => `${collection}: ${_id}`),
          )
          return (await Promise.all(all)).flat()
        }
        const before = await ids()
        const due = await findOverdue(cores, 100_000)
        await sweepAll(cores)
        days(1)
        await sweepAll(cores)
        // Data that was kept for another reason is reviewed after a day.
        expect(await findOverdue(cores, -86_400)).toEqual([])
        const after = new Set(await ids())
        const isOfDue = (id: string) => due.includes(id) || due.some((each) => each.startsWith('conversations'))
        expect(before.filter((id) => !after.has(id) && !isOfDue(id))).toEqual([])
      }),
      runs(60),
    )
  })
})

describe('the database commands of the retention and of deletions', () => {
  it('all use an index', async () => {
    const { core } = cores
    await keep({ conversations: 1, leads: 1, emptySessions: 1, audit: 1, heldDeliveries: 1 })
    await plantMarks(cores, { verified: true })
    await cores.send(await cores.newSession(), 'young')
    const silent = await cores.newVerified()
    await cores.newVerified((await findSession(core, silent.sessionId)).identity!.externalSubject)
    const { collections, scans } = await observeQueries(cores, async () => {
      days(3)
      await sweepAll(cores)
      days(3)
      await sweepAll(cores)
      for (const [kind, id] of [
        ['installation', cores.publicSiteKey],
        ['connection', cores.connectionId],
        ['workspace', cores.workspaceId],
      ] as const) {
        await deleteObject(core, kind, id, undefined)
        await sweepAll(cores)
        await sweepAll(cores)
      }
    })
    expect(await core.database.collections.workspaces.countDocuments()).toBe(0)
    for (const name of ['sessions', 'conversations', 'events', 'leads', 'deliveries', 'erasures', 'removals'])
      expect(collections).toContain(name)
    expect(scans).toEqual([])
  })
})
