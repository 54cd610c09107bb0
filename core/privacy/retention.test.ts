import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { testClient } from '../../test/support/test-database.ts'
import { findSession } from '../bans/bans.ts'
import { requestNavigation } from '../commands/commands.ts'
import { listMessages, sendAsAgent } from '../conversations/messages.ts'
import { setTypingOfVisitor } from '../conversations/typing.ts'
import { createAttempt, deliveriesOfLead } from '../deliveries/deliveries.ts'
import { captureLead, submitForm } from '../deliveries/lead-capture.ts'
import { reconcilePauses } from '../deliveries/pauses.ts'
import { updateSubscription } from '../deliveries/subscriptions.ts'
import { getLead } from '../leads/leads.ts'
import { findConversations } from '../log/conversation-store.ts'
import type { SessionContent } from '../sessions/model.ts'
import { newSubject, testCores } from '../test/cores.ts'
import { collectionsWithRule, findOverdue, sweepAll } from '../test/retention-rules.ts'
import { credentialsOf, site } from '../test/visitor-credentials.ts'
import { acceptForms, finishErasures, idsOf, placesOfTexts, plantMarks, visitorOf } from '../test/visitor-marks.ts'
import { reportPage } from '../visitors/sessions.ts'
import type { WorkspaceSettings } from '../workspaces/model.ts'
import { listPolicyChanges, recordPolicyChange } from '../workspaces/policy-changes.ts'
import { updateWorkspace } from '../workspaces/workspaces.ts'
import { eraseVisitor } from './erasures.ts'
import { sweepOldData } from './retention.ts'
import { visitorOfSubject } from './visitor-data.ts'

const cores = testCores({ started: false })
beforeAll(() => acceptForms(cores))

const daySeconds = 86_400
const days = (count: number) => cores.advance(count * daySeconds)
const keep = (retention: WorkspaceSettings['retention']) =>
  updateWorkspace(cores.core, cores.workspaceId, { retention })
const placesOf = (texts: string[]) => placesOfTexts(cores, texts)

/** Returns the ids that must not be stored anywhere after the session has been removed. */
const idsOfSession = async (session: SessionContent) => {
  const { sessionId, conversationId, visitorId, identity } = await findSession(cores.core, session.sessionId)
  return [sessionId, conversationId, visitorId, ...(identity ? [identity.subjectId] : [])]
}

/** Uses a session in every way except to send a message or a form. */
async function useSilently(session: SessionContent) {
  const { core } = cores
  const credentials = credentialsOf(session)
  await reportPage(core, { credentials, pageContext: { url: `${site}/p` }, idempotencyKey: randomUUID() })
  await setTypingOfVisitor(core, credentials, 'started')
  await setTypingOfVisitor(core, credentials, 'stopped')
  await requestNavigation(core, { sessionId: session.sessionId, url: `${site}/x` }, { subject: 'desk' })
}

it('each collection of the database has a retention rule', async () => {
  await cores.send(await cores.newSession(), 'hello')
  await cores.newVerified()
  const names = (await testClient().db(cores.name).listCollections().toArray()).map(({ name }) => name)
  const declared = Object.keys(cores.core.database.collections)
  expect([...names, ...declared].filter((name) => !collectionsWithRule.includes(name))).toEqual([])
  expect(
    collectionsWithRule.filter(
      (name) =>
        ![...declared, 'screenshots.files', 'screenshots.chunks', 'migrations', 'locks', 'storeHistory'].includes(name),
    ),
  ).toEqual([])
})

describe('a session without a message', () => {
  it.each(someOf(['anonymous', 'verified'], 1))('leaves nothing behind after it ended (%s)', async (kind) => {
    const browser = randomUUID()
    const created = await cores.newSession(cores.core, browser)
    const session = kind === 'anonymous' ? created : await cores.identify(created, cores.sign({ sub: newSubject() }))
    await useSilently(session)
    const traces = [browser, ...(await idsOfSession(created)), ...(await idsOfSession(session))]
    expect((await placesOf(traces)).length).toBeGreaterThan(4)
    await findSession(cores.core, session.sessionId)
    cores.advance(20 * 3_600)
    await sweepAll(cores)
    expect(await findSession(cores.core, session.sessionId)).toBeDefined()
    days(1)
    await sweepAll(cores)
    expect(await placesOf(traces)).toEqual([])
  })

  itLong('is removed from a conversation with messages, which then shows the visitor’s other session', async () => {
    const sub = newSubject()
    const writing = await cores.newVerified(sub)
    await cores.send(writing, 'hello')
    days(2)
    const silent = await cores.newVerified(sub)
    expect(silent.conversationId).toBe(writing.conversationId)
    await useSilently(silent)
    await cores.close(silent)
    const browserOf = await findSession(cores.core, silent.sessionId)
    days(2)
    await sweepAll(cores)
    expect(await placesOf([silent.sessionId, browserOf.visitorId])).toEqual([])
    const [conversation] = await findConversations(cores.core, [writing.conversationId])
    expect(conversation?.lastSessionId).toBe(writing.sessionId)
    expect(await listMessages(cores.core, writing.conversationId, {})).toMatchObject({ messages: [{}] })
    expect(await cores.history(await cores.newVerified(sub))).toEqual([])
  })

  itLong('is kept if agents wrote in its conversation, because only the session says who the visitor is', async () => {
    const session = await cores.newSession()
    const { conversationId, sessionId } = session
    await sendAsAgent(cores.core, { conversationId, clientOperationId: randomUUID(), body: 'Can I help?' })
    days(5)
    await sweepAll(cores)
    expect(await findSession(cores.core, sessionId)).toMatchObject({ conversationId })
  })

  itLong(
    'stays while the lead of its form is kept, because the session has the visitor’s consent to the lead',
    async () => {
      const session = await cores.newSession()
      await submitForm(cores.core, {
        credentials: credentialsOf(session),
        form: 'offline',
        fields: { email: 'a@b.example' },
        idempotencyKey: randomUUID(),
      })
      days(5)
      await sweepAll(cores)
      expect(await findSession(cores.core, session.sessionId)).toBeDefined()
      await keep({ leads: 1 })
      await sweepAll(cores)
      await expect(findSession(cores.core, session.sessionId)).rejects.toThrow('NotFound')
      await keep({ leads: null })
    },
  )

  itLong('is removed from a conversation without messages if its visitor has a newer session there', async () => {
    const sub = newSubject()
    const first = await cores.newVerified(sub)
    days(2)
    const again = await cores.newVerified(sub)
    expect(again.conversationId).toBe(first.conversationId)
    await sweepAll(cores)
    await expect(findSession(cores.core, first.sessionId)).rejects.toThrow('NotFound')
    expect(await findSession(cores.core, again.sessionId)).toBeDefined()
    await cores.send(await cores.renew(again), 'still here')
    days(2)
    await sweepAll(cores)
    expect(await listMessages(cores.core, again.conversationId, {})).toMatchObject({ messages: [{}] })
  })

  itLong('is removed after the period of empty sessions, even if conversations have a shorter period', async () => {
    await keep({ emptySessions: 3, conversations: 1 })
    const session = await cores.newSession()
    for (const hours of [30, 24, 14]) {
      cores.advance(hours * 3_600)
      await sweepAll(cores)
      expect(await findSession(cores.core, session.sessionId)).toBeDefined()
    }
    cores.advance(5 * 3_600)
    await sweepAll(cores)
    await expect(findSession(cores.core, session.sessionId)).rejects.toThrow('NotFound')
    await keep({ emptySessions: null, conversations: null })
  })

  itLong('is kept if the workspace sets no limit for empty sessions', async () => {
    await keep({ emptySessions: 0 })
    const session = await cores.newSession()
    days(400)
    await sweepAll(cores)
    expect(await findSession(cores.core, session.sessionId)).toBeDefined()
    await keep({ emptySessions: null })
    await sweepAll(cores)
    await expect(findSession(cores.core, session.sessionId)).rejects.toThrow('NotFound')
  })
})

describe('a conversation', () => {
  const removedConversations = async () =>
    (await cores.core.metrics.removed.get()).values.find(({ labels }) => labels.kind === 'conversations')?.value ?? 0
  const spared = async () => (await cores.core.metrics.spared.get()).values[0]?.value ?? 0

  itLong('is removed with all that belongs to it, except its leads, when it is older than allowed', async () => {
    const planted = await plantMarks(cores, { verified: true })
    const ids = await idsOf(cores, planted)
    const kept = /^(preChat|offline|note)/
    await keep({ conversations: 30 })
    days(29)
    await sweepAll(cores)
    expect(await listMessages(cores.core, planted.session.conversationId, {})).toBeDefined()
    const removedBefore = await removedConversations()
    days(3)
    await sweepAll(cores)
    days(1)
    await sweepAll(cores)
    expect(await removedConversations()).toBeGreaterThan(removedBefore)
    const gone = [...planted.marks.filter((mark) => !kept.test(mark)), ...ids.filter((id) => !id.startsWith('sub_'))]
    expect(await placesOf(gone)).toEqual([])
    const leads = planted.marks.filter((mark) => kept.test(mark))
    expect((await placesOf(leads)).length).toBeGreaterThanOrEqual(leads.length)
    // An erasure still finds the leads of the verified visitor.
    const visitor = await visitorOfSubject(cores.core, cores.workspaceId, planted.externalSubject)
    await eraseVisitor(cores.core, visitor, 'desk')
    await finishErasures(cores)
    expect(await placesOf(planted.marks)).toEqual([])
    await keep({ conversations: null })
  })

  itLong('is kept while one of its sessions is younger than the period', async () => {
    const sub = newSubject()
    const first = await cores.newVerified(sub)
    await cores.send(first, 'old')
    days(10)
    const again = await cores.newVerified(sub)
    await keep({ conversations: 5 })
    await sweepAll(cores)
    expect(await listMessages(cores.core, again.conversationId, {})).toMatchObject({ messages: [{}] })
    days(6)
    await sweepAll(cores)
    await expect(listMessages(cores.core, again.conversationId, {})).rejects.toThrow('NotFound')
    await keep({ conversations: null })
  })

  it('is shown again if the policy is turned off while it is hidden', async () => {
    const session = await cores.newSession()
    await cores.send(session, 'hello')
    await keep({ conversations: 5 })
    days(6)
    await sweepOldData(cores.core)
    await expect(listMessages(cores.core, session.conversationId, {})).rejects.toThrow('NotFound')
    const sparedBefore = await spared()
    await keep({ conversations: 0 })
    await sweepAll(cores)
    // Conversations of other tests may be hidden too.
    expect(await spared()).toBeGreaterThan(sparedBefore)
    expect(await listMessages(cores.core, session.conversationId, {})).toMatchObject({ messages: [{}] })
    await keep({ conversations: null })
  })

  itLong('leaves no data behind if a sweep and an erasure remove it at the same time', async () => {
    const planted = await plantMarks(cores, { verified: false })
    await keep({ conversations: 5 })
    days(7)
    await sweepOldData(cores.core)
    await eraseVisitor(cores.core, await visitorOf(cores, planted.session), 'desk')
    await finishErasures(cores)
    await sweepAll(cores)
    expect(await placesOf(planted.marks)).toEqual([])
    await keep({ conversations: null })
  })
})

describe('leads, held deliveries and audit', () => {
  const sub = async () =>
    (await cores.core.database.collections.leadSubscriptions.findOne({ workspaceId: cores.workspaceId }))!
  const by = { subject: 'desk' }

  itLong('are removed when they are older than allowed, and kept until then', async () => {
    const capture = () =>
      captureLead(cores.core, { workspaceId: cores.workspaceId, source: 'crm', fields: { email: 'x' } }, undefined)
    const old = await capture()
    const { _id: subscriptionId } = await sub()
    await createAttempt(cores.core, { leadId: old, subscriptionId, idempotencyKey: randomUUID() }, by)
    await updateSubscription(cores.core, subscriptionId, { status: 'disabled' }, by)
    const { workspaceId } = cores
    const recordChange = () =>
      recordPolicyChange(
        cores.core,
        randomUUID(),
        { workspaceId, actor: 'desk', action: 'UpdateWorkspace', target: workspaceId, settings: [] },
        async () => {},
      )
    const changes = async () => (await listPolicyChanges(cores.core, { workspaceId })).page.length
    await recordChange()
    days(10)
    await recordChange()
    const young = await capture()
    await reconcilePauses(cores.core)
    const statuses = async (leadId: string) =>
      (await deliveriesOfLead(cores.core, leadId, 10)).map(({ status }) => status)
    expect([await statuses(old), await statuses(young)]).toEqual([['held', 'held'], ['held']])
    await keep({ heldDeliveries: 5 })
    await sweepAll(cores)
    expect([await statuses(old), await statuses(young)]).toEqual([[], ['held']])
    await keep({ audit: 5 })
    await sweepAll(cores)
    expect((await sub()).audit.map(({ action }) => action)).toEqual([])
    expect(await changes()).toBe(1)
    await keep({ leads: 5 })
    await sweepAll(cores)
    await expect(getLead(cores.core, old, undefined)).rejects.toThrow('LeadNotFound')
    expect(await getLead(cores.core, young, undefined)).toBeDefined()
    days(6)
    await sweepAll(cores)
    await expect(getLead(cores.core, young, undefined)).rejects.toThrow('LeadNotFound')
    expect(await statuses(young)).toEqual([])
    expect(await findOverdue(cores)).toEqual([])
    await keep({ heldDeliveries: null, audit: null, leads: null })
  })
})
