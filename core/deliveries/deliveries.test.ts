import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { DeliveryStatus, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { codeOf, operatorScopes, testDeliveries } from '../test/deliveries.ts'

const test = testDeliveries()

const second = 1000
const hour = 3_600_000

describe('CreateDeliveryAttempt', () => {
  it('CreateDeliveryAttempt creates one attempt per idempotency key under concurrent requests on two cores', async () => {
    const { leadId, subscriptionId, workspaceId } = await test.newScene()
    const operators = await Promise.all(test.cores.map((core) => test.client(core, operatorScopes, workspaceId)))
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        operators[index % 2]!.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: 'k' }),
      ),
    )
    expect(new Set(answers.map(({ attempt }) => attempt?.attemptId)).size).toBe(1)
    expect(answers.filter(({ existing }) => !existing)).toHaveLength(1)
    expect(await test.cores[0]!.database.collections.deliveries.countDocuments({ leadId })).toBe(1)
    expect(answers[0]!.attempt).toMatchObject({
      attemptId: expect.stringMatching(/^att_/),
      deliveryId: expect.stringMatching(/^dlv_/),
      leadId,
      subscriptionId,
      attemptNumber: 1,
      status: DeliveryStatus.PENDING,
      responseClass: ResponseClass.UNSPECIFIED,
    })
  })

  it('CreateDeliveryAttempt rejects an idempotency key that was used with another lead or subscription', async () => {
    const { operator, leadId, subscriptionId, send } = await test.newScene()
    await send('k')
    const other = await operator.captureLead({ source: 'test', fields: {} })
    const sub = await operator.createSubscription({ destinationUrl: 'https://crm.example/' })
    const key = { idempotencyKey: 'k' }
    expect(await codeOf(operator.createDeliveryAttempt({ leadId: other.leadId, subscriptionId, ...key }))).toBe(
      'IdempotencyConflict',
    )
    expect(await codeOf(operator.createDeliveryAttempt({ leadId, subscriptionId: sub.subscriptionId, ...key }))).toBe(
      'IdempotencyConflict',
    )
    expect((await send('k2')).deliveryId).not.toBe((await send('k')).deliveryId)
  })

  // test/authorization calls each method for objects of another workspace.
  it('CreateDeliveryAttempt finds no subscription of another workspace, which may use the same idempotency key', async () => {
    const [mine, theirs] = [await test.newScene(), await test.newScene()]
    const request = { leadId: mine.leadId, subscriptionId: theirs.subscriptionId, idempotencyKey: 'k' }
    expect(await codeOf(mine.operator.createDeliveryAttempt(request))).toBe('SubscriptionNotFound')
    await theirs.send('shared')
    expect((await mine.send('shared')).leadId).toBe(mine.leadId)
    expect((await mine.operator.listDeliveries({ leadId: theirs.leadId })).deliveries).toEqual([])
  })

  it('CreateDeliveryAttempt rejects an invalid idempotency key, a disabled subscription and a body that is too large', async () => {
    const { operator, leadId, subscriptionId, send } = await test.newScene({ mappedFields: ['a', 'b'] })
    expect(await codeOf(send('a b'))).toBe('ValidationFailed')
    expect(await codeOf(send(''))).toBe('ValidationFailed')
    const fields = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`f${index}`, 'ä'.repeat(4000)]))
    const large = await operator.captureLead({ source: 'test', fields })
    expect((await send('fits', large.leadId)).status).toBe(DeliveryStatus.PENDING)
    await operator.updateSubscription({ subscriptionId, mappedFields: { names: Object.keys(fields) } })
    expect(await codeOf(send('large', large.leadId))).toBe('PayloadTooLarge')
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    expect(await codeOf(operator.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: 'off' }))).toBe(
      'SubscriptionDisabled',
    )
    // A repeated request returns the attempt of the first request, although the subscription is now disabled.
    expect((await send('fits', large.leadId)).status).toBe(DeliveryStatus.HELD)
  })

  it('all attempts of a delivery send the same body, with a signature that the Standard Webhooks library accepts', async () => {
    const { send, secret, subscriptionId } = await test.newScene({ fields: { name: 'Zoë', mail: 'z@example.org' } })
    const worker = await test.worker()
    const attempt = await send()
    const [first] = (await worker.claim()).filter(({ destination }) => destination === subscriptionId)
    expect(first).toMatchObject({
      deliveryId: attempt.deliveryId,
      attemptId: attempt.attemptId,
      url: 'https://crm.example/leads',
      deadlineMs: 10_000,
      leaseMs: 5_000,
      headers: { 'x-service-webhook-id': attempt.deliveryId, 'x-correlation-id': attempt.correlationId },
    })
    const text = Buffer.from(first!.body).toString()
    expect(new Webhook(secret).verify(text, first!.headers)).toMatchObject({
      eventType: 'lead.ready-for-delivery',
      id: attempt.deliveryId,
      data: { reference: attempt.leadId, name: 'Zoë' },
    })
    expect(text).not.toContain('example.org')
    expect(await worker.answer(first!, 503)).toBe(true)
    test.advance(6 * second)
    const [again] = (await worker.claim()).filter(({ destination }) => destination === subscriptionId)
    expect(Buffer.from(again!.body).toString()).toBe(text)
    expect(again!.attemptId).not.toBe(first!.attemptId)
    expect(again!.headers['webhook-id']).toBe(first!.headers['webhook-id'])
    expect(again!.headers['webhook-timestamp']).not.toBe(first!.headers['webhook-timestamp'])
    expect(again!.headers['x-correlation-id']).not.toBe(first!.headers['x-correlation-id'])
    expect(await worker.answer(again!, 204)).toBe(true)
  })
})

it('an accepted delivery is sent only once, and its body is removed', async () => {
  const { send, attempts, operator } = await test.newScene()
  const { deliveryId, attemptId } = await send()
  const worker = await test.worker()
  await worker.drain(202)
  expect(await attempts(deliveryId)).toMatchObject([
    { status: DeliveryStatus.ACCEPTED, responseClass: ResponseClass.ACCEPTED, responseStatus: 202, durationMs: 12 },
  ])
  const document = await test.cores[0]!.database.collections.deliveries.findOne({ _id: deliveryId })
  expect(document).not.toHaveProperty('body')
  expect(document).not.toHaveProperty('dueAt')
  expect(await codeOf(operator.retryDeliveryAttempt({ attemptId, idempotencyKey: 'again' }))).toBe(
    'AttemptNotRetryable',
  )
  test.advance(48 * hour)
  expect(await worker.claim()).toEqual([])
})

describe('the lists of leads and deliveries', () => {
  itLong('the lists of leads and deliveries return each item on exactly one page', async () => {
    const { operator, send, leadId } = await test.newScene()
    const leadIds = [leadId]
    for (let index = 0; index < 6; index += 1) {
      leadIds.unshift((await operator.captureLead({ source: 'test', fields: { n: String(index) } })).leadId)
    }
    const deliveryIds: string[] = []
    for (let index = 0; index < 7; index += 1) deliveryIds.unshift((await send()).deliveryId)

    const leads: string[] = []
    for (let pageToken = ''; ; ) {
      const page = await operator.listLeads({ limit: 3, pageToken })
      leads.push(...page.leads.map((lead) => lead.leadId))
      pageToken = page.nextPageToken
      if (pageToken === '') break
    }
    expect(leads).toHaveLength(7)
    expect(new Set(leads)).toEqual(new Set(leadIds))

    const elsewhere = await test.newScene()
    const some = [...leadIds.slice(2, 5), elsewhere.leadId, 'lead_unknown']
    const { leads: named, nextPageToken } = await operator.listLeads({ leadIds: some, limit: 1 })
    expect(new Set(named.map((lead) => lead.leadId))).toEqual(new Set(leadIds.slice(2, 5)))
    expect(nextPageToken).toBe('')
    const tooMany = Array.from({ length: 101 }, () => leadId)
    expect(await codeOf(operator.listLeads({ leadIds: tooMany }))).toBe('ValidationFailed')

    const deliveries: string[] = []
    for (let pageToken = ''; ; ) {
      const page = await operator.listDeliveries({ limit: 3, pageToken, leadId })
      deliveries.push(...page.deliveries.map(({ deliveryId }) => deliveryId))
      pageToken = page.nextPageToken
      if (pageToken === '') break
    }
    expect(deliveries).toHaveLength(7)
    expect(new Set(deliveries)).toEqual(new Set(deliveryIds))
    expect((await operator.listDeliveries({ statuses: [DeliveryStatus.ACCEPTED] })).deliveries).toEqual([])
    expect((await operator.listDeliveries({ statuses: [DeliveryStatus.PENDING] })).deliveries).toHaveLength(7)
    expect((await operator.listDeliveryAttempts({ leadId })).attempts).toHaveLength(7)
    expect(await codeOf(operator.listDeliveries({ pageToken: 'x' }))).toBe('ValidationFailed')
    expect(await codeOf(operator.listDeliveries({ limit: 101 }))).toBe('ValidationFailed')
    expect(await codeOf(operator.listDeliveryAttempts({}))).toBe('ValidationFailed')
    await (await test.worker()).drain()
  })
})

describe('a test delivery', () => {
  it('a test delivery has sample data of the mapped fields and no lead, and is listed with its attempts', async () => {
    const { operator, subscriptionId, attempts } = await test.newScene({ mappedFields: ['name', 'email'] })
    const { attempt, existing } = await operator.sendTestDelivery({ subscriptionId, idempotencyKey: 'k' })
    expect([attempt!.leadId, attempt!.manual, existing]).toEqual(['', true, false])
    expect(attempt!.eventType).toBe('lead.ready-for-delivery')
    const worker = await test.worker()
    const [claimed] = await worker.claim()
    expect(JSON.parse(Buffer.from(claimed!.body).toString())).toMatchObject({
      eventType: 'lead.ready-for-delivery',
      id: attempt!.deliveryId,
      contractVersion: '1.0',
      test: true,
      data: { reference: 'lead_test', name: 'Test', email: 'test@example.com' },
    })
    await worker.answer(claimed!, 500)
    expect(await attempts(attempt!.deliveryId)).toMatchObject([{ status: DeliveryStatus.RETRY_SCHEDULED }])
    const { deliveries } = await operator.listDeliveries({ subscriptionId })
    expect(deliveries.map(({ deliveryId }) => deliveryId)).toEqual([attempt!.deliveryId])
    const again = { attemptId: claimed!.attemptId, idempotencyKey: 'again' }
    expect((await operator.retryDeliveryAttempt(again)).attempt).toMatchObject({ leadId: '', attemptNumber: 2 })
  })

  it('a repeat returns the test delivery even if the subscription no longer has the type of its event', async () => {
    const { operator, subscriptionId } = await test.newScene()
    const setTypes = (types: string[]) => operator.updateSubscription({ subscriptionId, policy: { types } })
    const send = () =>
      operator.sendTestDelivery({ subscriptionId, eventType: 'lead.captured', idempotencyKey: 'captured' })
    await setTypes(['lead.captured'])
    const { attempt } = await send()
    await setTypes(['lead.ready-for-delivery'])
    expect(await send()).toMatchObject({ existing: true, attempt: { attemptId: attempt!.attemptId } })
  })

  it('a test delivery is sent once per idempotency key, and a key that was used for another subscription is rejected', async () => {
    const { operator, subscriptionId } = await test.newScene()
    const send = (id = subscriptionId) => operator.sendTestDelivery({ subscriptionId: id, idempotencyKey: 'k' })
    const sent = await Promise.all([send(), send(), send()])
    expect(new Set(sent.map(({ attempt }) => attempt!.attemptId)).size).toBe(1)
    const { subscriptionId: other } = await operator.createSubscription({ destinationUrl: 'https://crm.example/b' })
    await expect(send(other)).rejects.toThrow('IdempotencyConflict')
    await expect(operator.sendTestDelivery({ subscriptionId, idempotencyKey: '' })).rejects.toThrow('ValidationFailed')
  })

  it('a test delivery is rejected for a disabled subscription and for another workspace', async () => {
    const { operator, subscriptionId } = await test.newScene()
    const { operator: stranger } = await test.newScene()
    const call = { subscriptionId, idempotencyKey: 'k' }
    await expect(stranger.sendTestDelivery(call)).rejects.toThrow('SubscriptionNotFound')
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    await expect(operator.sendTestDelivery(call)).rejects.toThrow('SubscriptionDisabled')
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.ENABLED })
    await expect(operator.sendTestDelivery(call)).resolves.toBeDefined()
    await operator.deleteSubscription({ subscriptionId })
    await expect(operator.sendTestDelivery({ ...call, idempotencyKey: 'l' })).rejects.toThrow('SubscriptionNotFound')
  })
})
