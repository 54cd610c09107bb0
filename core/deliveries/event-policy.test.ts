import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { type ClaimedDelivery, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { type CreateSubscriptionRequestSchema, EventPolicySchema } from '#proto/lead/v1/subscription_pb.js'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { insertLead } from '../leads/leads.ts'
import { removeSuppressions } from '../leads/suppressions.ts'
import { hasFailed } from '../test/cores.ts'
import { issuesOf, testDeliveries } from '../test/deliveries.ts'
import { catchUpFeed, flushFeed } from '../test/feed.ts'
import { createConnection, createInstallation } from '../workspaces/workspaces.ts'
import { fanOutLead, planFanOut } from './lead-capture.ts'
import { proceedRecoveries } from './recovery.ts'
import { addSuppressions } from './suppressing.ts'

const test = testDeliveries()

const destinationUrl = 'https://crm.example/leads'
type Policy = MessageInitShape<typeof EventPolicySchema>

/** A workspace whose one automatic subscription has this policy. */
async function scene(policy: Policy | undefined, more: MessageInitShape<typeof CreateSubscriptionRequestSchema> = {}) {
  const { workspaceId, operator, subscriptionId: unused } = await test.newScene()
  await operator.deleteSubscription({ subscriptionId: unused })
  // The feed has the lead of the scene before the subscription begins to follow it.
  await flushFeed(test.cores[0]!)
  const settings = { destinationUrl, mappedFields: ['email'], automatic: true, ...more }
  const { subscriptionId } = await operator.createSubscription({
    ...settings,
    ...(policy && { policy: create(EventPolicySchema, policy) }),
  })
  const worker = await test.worker()
  /** Sends all events, and returns their bodies. */
  async function sent(status = 200) {
    const bodies = []
    for (;;) {
      for (const core of test.cores) await flushFeed(core)
      const claimed = await worker.claim()
      if (claimed.length === 0) return bodies
      for (const each of claimed) {
        bodies.push(JSON.parse(Buffer.from(each.body).toString()))
        await worker.answer(each, status)
      }
    }
  }
  const capture = async (source = 'api') =>
    (await operator.captureLead({ source, fields: { email: 'ada@example.com', phone: 'not mapped' } })).leadId
  /** Stores a lead as a visitor's form does. */
  async function submit(source: string, publicSiteKey: string) {
    const [core] = test.cores
    const fields = { email: 'ada@example.com' }
    const lead = { leadId: `lead_${Math.random()}`, workspaceId, source, fields, createdAt: new Date(test.now()) }
    const submitted = { ...lead, formSubmissionId: 'frm_1', publicSiteKey }
    const stored = { ...submitted, ...(await planFanOut(core!, submitted)) }
    await insertLead(core!, stored)
    await fanOutLead(core!, stored)
    return lead.leadId
  }
  return { workspaceId, operator, subscriptionId, sent, capture, submit }
}

const typesOf = (bodies: { eventType: string }[]) => bodies.map(({ eventType }) => eventType).toSorted()

describe('the event policy of a subscription', () => {
  it.each<[Policy | undefined, string[]]>(
    someOf(
      [
        [undefined, ['lead.ready-for-delivery']],
        [{}, ['lead.ready-for-delivery']],
        [{ types: ['lead.captured'] }, ['lead.captured']],
        [{ types: ['lead.delivered'] }, []],
        [{ types: ['lead.ready-for-delivery', 'lead.delivered'] }, ['lead.delivered', 'lead.ready-for-delivery']],
        [{ types: ['lead.delivery-failed', 'lead.ready-for-delivery'] }, ['lead.ready-for-delivery']],
        [{ sources: ['services'] }, ['lead.ready-for-delivery']],
        [{ sources: ['offline-form', 'pre-chat-form'] }, []],
        [{ types: ['lead.captured'], sources: ['offline-form'] }, []],
      ],
      2,
    ),
  )('with %j, a captured lead of a service causes %j', async (policy, expected) => {
    const { sent, capture } = await scene(policy)
    await capture()
    expect(typesOf(await sent())).toEqual(expected)
    expect(await sent()).toEqual([])
  })

  it('covers the leads of its forms and installations, and no lead of a service that has the name of a form', async () => {
    const { operator, subscriptionId, workspaceId, sent, capture, submit } = await scene({ sources: ['offline-form'] })
    await capture('offline-form')
    await submit('pre-chat-form', 'pk_1')
    const offline = await submit('offline-form', 'pk_1')
    expect((await sent()).map(({ data }) => data.reference)).toEqual([offline])
    const core = test.cores[0]!
    const { connectionId } = await createConnection(core, workspaceId, 'Site', undefined)
    const { installation } = await createInstallation(core, connectionId, { origins: ['https://a.example'] }, undefined)
    const { publicSiteKey } = installation
    const installations = [publicSiteKey]
    await operator.updateSubscription({ subscriptionId, policy: { types: ['lead.captured'], installations } })
    await capture()
    await submit('offline-form', 'pk_1')
    const here = await submit('pre-chat-form', publicSiteKey)
    expect((await sent()).map(({ data }) => data.reference)).toEqual([here])
    const issues = await issuesOf(
      operator.updateSubscription({ subscriptionId, policy: { installations: ['pk_unknown'] } }),
    )
    expect(issues).toEqual(['/policy/installations/0 exists'])
  })

  it('does not keep a requested delivery from being sent', async () => {
    const { operator, subscriptionId, sent, capture } = await scene({ sources: ['offline-form'] })
    const leadId = await capture()
    await operator.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: leadId })
    expect(await sent()).toMatchObject([{ eventType: 'lead.ready-for-delivery', data: { reference: leadId } }])
  })

  it('sends the ends of deliveries with their ids, and no event about the delivery of an event', async () => {
    const types = ['lead.ready-for-delivery', 'lead.delivered', 'lead.delivery-failed']
    const { subscriptionId, sent, capture } = await scene({ types })
    const leadId = await capture()
    const [lead, failed] = await sent(400)
    expect(lead.eventType).toBe('lead.ready-for-delivery')
    const data = { reference: lead.id, subscriptionId, deliveryId: lead.id, leadId }
    expect(failed).toMatchObject({ eventType: 'lead.delivery-failed', data })
    expect(await sent()).toEqual([])
  })

  it('records an event about a suppressed person as suppressed, and sends it when the person is no longer listed', async () => {
    const { operator, subscriptionId, workspaceId, sent, capture } = await scene({ types: ['lead.delivered'] })
    const core = test.cores[0]!
    const other = await operator.createSubscription({ destinationUrl, automatic: true })
    const leadId = await capture()
    const list = { workspaceId, entries: [{ kind: 'email' as const, value: 'ada@example.com' }] }
    const worker = await test.worker()
    // The capture of a lead does not wait for its deliveries.
    const claimed: ClaimedDelivery[] = []
    await until('the delivery', async () => claimed.push(...(await worker.claim())) > 0)
    const [lead] = claimed
    expect(lead!.destination).toBe(other.subscriptionId)
    await worker.answer(lead!, 200)
    await addSuppressions(core, { ...list, reason: '', addedBy: 'ada' })
    expect(await sent()).toEqual([])
    const { deliveries } = await operator.listDeliveries({ subscriptionId })
    expect(deliveries).toMatchObject([{ leadId, latestAttempt: { responseClass: ResponseClass.SUPPRESSED } }])
    await removeSuppressions(core, { ...list, suppressionIds: [] })
    const { attempts } = await operator.listDeliveryAttempts({ deliveryId: deliveries[0]!.deliveryId })
    await operator.retryDeliveryAttempt({ attemptId: attempts[0]!.attemptId, idempotencyKey: 'again' })
    expect(typesOf(await sent())).toEqual(['lead.delivered'])
  })

  it('begins with what happens after it was set', async () => {
    const { operator, subscriptionId, sent, capture } = await scene({ sources: ['offline-form'] })
    await capture()
    expect(await sent()).toEqual([])
    await operator.updateSubscription({ subscriptionId, policy: { types: ['lead.captured'] } })
    const leadId = await capture()
    expect(await sent()).toMatchObject([{ eventType: 'lead.captured', data: { reference: leadId } }])
    await operator.updateSubscription({ subscriptionId, policy: {} })
    await capture()
    expect(typesOf(await sent())).toEqual(['lead.ready-for-delivery'])
  })

  it.each([
    [{ types: ['message.visitor'] }, '/policy/types/0 enum'],
    [{ types: ['lead.captured', 'lead.captured'] }, '/policy/types/1 uniqueItems'],
    [{ sources: ['email'] }, '/policy/sources/0 enum'],
    [{ installations: Array.from({ length: 101 }, (_, index) => `pk_${index}`) }, '/policy/installations maxItems'],
  ])('rejects %j', async (policy, issue) => {
    const { operator, subscriptionId } = await test.newScene()
    expect(await issuesOf(operator.updateSubscription({ subscriptionId, policy }))).toEqual([issue])
    expect(await issuesOf(operator.createSubscription({ destinationUrl, policy }))).toEqual([issue])
  })

  it('of a subscription without one is shown as its default', async () => {
    const { subscription, operator } = await test.newScene()
    expect((await subscription()).policy).toMatchObject({ types: ['lead.ready-for-delivery'], sources: [] })
    const { subscriptions } = await operator.listSubscriptions({})
    expect(subscriptions[0]!.policy).toMatchObject({ types: ['lead.ready-for-delivery'], installations: [] })
  })

  itLong('creates the deliveries of an event once, no matter after which write a core dies', async () => {
    for (let writes = 0, died = true; died; writes += 1) {
      const { sent, capture } = await scene({ types: ['lead.captured'] })
      await capture()
      const mortal = test.mortalCore(writes)
      died = await hasFailed(flushFeed(mortal))
      await Promise.all(test.cores.map((core) => flushFeed(core)))
      await Promise.all(test.cores.map((core) => catchUpFeed(core)))
      expect(typesOf(await sent())).toEqual(['lead.captured'])
      await test.clear()
    }
  })
})

describe('the mapping of a subscription', () => {
  it('sends a field under its other name, in deliveries, events and tests', async () => {
    const sentNames = { email: 'E-Mail' }
    const types = ['lead.ready-for-delivery', 'lead.captured']
    const { operator, subscriptionId, sent, capture } = await scene({ types }, { sentNames })
    const leadId = await capture()
    const data = { reference: leadId, 'E-Mail': 'ada@example.com' }
    expect((await sent()).map((body) => body.data)).toEqual([data, data])
    for (const eventType of types)
      await operator.sendTestDelivery({ subscriptionId, eventType, idempotencyKey: eventType })
    const sample = { test: true, data: { reference: 'lead_test', 'E-Mail': 'test@example.com' } }
    expect(await sent()).toMatchObject([sample, sample])
  })

  it('is replaced as a whole, and a field that is no longer sent loses its name', async () => {
    const { operator, subscriptionId, subscription } = await test.newScene({ mappedFields: ['name', 'mail'] })
    const named = { names: { name: 'full_name', mail: 'name' } }
    await operator.updateSubscription({ subscriptionId, sentNames: named })
    expect((await subscription()).sentNames).toEqual(named.names)
    await operator.updateSubscription({ subscriptionId, mappedFields: { names: ['mail'] } })
    expect((await subscription()).sentNames).toEqual({ mail: 'name' })
    await operator.updateSubscription({ subscriptionId, sentNames: {} })
    expect((await subscription()).sentNames).toEqual({})
    for (const change of [{ sentNames: named, mappedFields: ['name', 'mail'] }, { mappedFields: ['name'] }])
      await operator.updateSubscription({ subscriptionId, ...change, mappedFields: { names: change.mappedFields } })
    await operator.updateSubscription({ subscriptionId, mappedFields: { names: ['name', 'mail'] } })
    expect((await subscription()).sentNames).toEqual({ name: 'full_name' })
  })

  it.each<[Record<string, string>, string]>([
    [{ name: 'reference' }, '/sentNames/name pattern'],
    [{ name: 'full name' }, '/sentNames/name pattern'],
    [{ name: 'mail' }, '/sentNames/name uniqueItems'],
    [{ phone: 'tel' }, '/sentNames propertyNames'],
  ])('rejects the names %j', async (names, issue) => {
    const { operator, subscriptionId } = await test.newScene({ mappedFields: ['name', 'mail'] })
    expect(await issuesOf(operator.updateSubscription({ subscriptionId, sentNames: { names } }))).toEqual([issue])
  })

  itLong('lets a recovery choose the events whose deliveries are sent again', async () => {
    const { operator, subscriptionId, sent, capture } = await scene({
      types: ['lead.ready-for-delivery', 'lead.captured'],
    })
    await capture()
    expect(await sent(400)).toHaveLength(2)
    const period = { since: { seconds: 0n, nanos: 0 }, subscriptionId, preview: true }
    const count = async (eventTypes: string[]) => (await operator.recoverDeliveries({ ...period, eventTypes })).count
    expect([await count([]), await count(['lead.captured']), await count(['lead.delivered'])]).toEqual([2, 1, 0])
    expect(await issuesOf(operator.recoverDeliveries({ ...period, eventTypes: ['x'] }))).toEqual(['/eventTypes/0 enum'])
    const eventTypes = ['lead.captured']
    const { recovery } = await operator.recoverDeliveries({ ...period, preview: false, eventTypes })
    expect(recovery!.eventTypes).toEqual(eventTypes)
    await proceedRecoveries(test.cores[0]!)
    expect(typesOf(await sent())).toEqual(eventTypes)
  })
})
