import { createHmac, randomUUID } from 'node:crypto'
import { MongoClient } from 'mongodb'
import { Webhook } from 'standardwebhooks'
import { expect } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionPurpose, SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import type { TestDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { createDeliveryClient, idOf } from './delivery-client.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

const fiveDaysMs = 5 * 24 * 60 * 60 * 1000
const { ENABLED, DISABLED } = SubscriptionStatus

/** Tests of contract section 5 about what owners of a subscription can do. */
export function ownerRules(suite: () => Suite, database: TestDatabase): void {
  const client = createDeliveryClient(suite)
  const { subscribe, deliver, settled, received } = client
  const leads = () => suite().roomy.operator.leads

  rule('C5.20', async () => {
    const { subscriptionId, secret, path } = await subscribe('/401')
    const rotated = await leads().rotateSubscriptionSecret({ subscriptionId })
    const signers = async () => {
      const { attempt } = await deliver(subscriptionId)
      const find = () => received(path).find((each) => idOf(each) === attempt.deliveryId)
      const { body, headers } = await until('the request', find)
      const isSignedWith = (key: string) =>
        headers['x-service-webhook-signature'] === `sha256=${createHmac('sha256', key).update(body).digest('hex')}`
      for (const key of [secret, rotated.secret]) new Webhook(key).verify(body, headers as Record<string, string>)
      return [secret, rotated.secret].map(isSignedWith)
    }
    expect(await signers()).toEqual([true, false])
    const { subscription } = await leads().getSubscription({ subscriptionId })
    const next = subscription!.secrets.find(({ active }) => !active)!
    await leads().activateSubscriptionSecret({ subscriptionId, secretId: next.secretId })
    await until('the new secret to sign', async () => (await signers())[1])
    const { subscription: after } = await leads().getSubscription({ subscriptionId })
    expect(after!.status).toBe(ENABLED)
  })

  rule('C5.21', async () => {
    const { subscriptionId, path } = await subscribe('/400')
    const since = { seconds: BigInt(Math.floor(Date.now() / 1000) - 1), nanos: 0 }
    const failed = await deliver(subscriptionId)
    await settled(failed)
    suite().receiver.on(path, (_request, response) => response.writeHead(200).end())
    const preview = await leads().recoverDeliveries({ subscriptionId, since, preview: true })
    expect(preview.count).toBe(1)
    const statuses = [DeliveryStatus.DEAD_LETTERED]
    expect((await leads().recoverDeliveries({ subscriptionId, since, statuses, preview: true })).count).toBe(0)
    expect(received(path)).toHaveLength(1)
    await leads().recoverDeliveries({ subscriptionId, since })
    const [first, second] = await until('the second request', () =>
      received(path).length === 2 ? received(path) : undefined,
    )
    expect(idOf(second!)).toBe(failed.attempt.deliveryId)
    expect(second!.body.equals(first!.body)).toBe(true)
  })

  rule('C5.22', async () => {
    const { subscriptionId, secret, path } = await subscribe('/200')
    const { attempt } = await leads().sendTestDelivery({ subscriptionId, idempotencyKey: randomUUID() })
    const { body, headers } = await until('the test', () => received(path)[0])
    const sent = new Webhook(secret).verify(body, headers as Record<string, string>)
    expect(sent).toMatchObject({ id: attempt!.deliveryId, test: true, eventType: 'lead.ready-for-delivery' })
  })

  rule('C5.23', async () => {
    const value = 'Bearer key-of-the-crm'
    const { subscriptionId, path } = await subscribe('/200', { headers: [{ name: 'Authorization', value }] })
    await settled(await deliver(subscriptionId))
    expect(received(path)[0]!.headers.authorization).toBe(value)
    const read = await leads().getSubscription({ subscriptionId })
    expect(read.subscription!.headers.map(({ name }) => name)).toEqual(['authorization'])
    expect(JSON.stringify(read.subscription!.headers)).not.toContain('key-of-the-crm')
    const ours = ['webhook-id', 'X-Service-Webhook-Signature', 'Content-Type', 'Host', 'Transfer-Encoding']
    const refused = [
      ...ours.map((name) => [{ name, value: 'x' }]),
      [{ name: 'x-a', value: 'a\r\nwebhook-id: b' }],
      [{ name: 'x-a\r\nb', value: 'a' }],
      Array.from({ length: 11 }, (_, index) => ({ name: `x-${index}`, value: 'a' })),
    ]
    for (const headers of refused)
      await expect(leads().updateSubscription({ subscriptionId, headers: { headers } })).rejects.toThrow(
        'ValidationFailed',
      )
  })

  rule('C5.24', async () => {
    const { subscriptionId, path } = await subscribe('/200', { maxPerSecond: 2 })
    const start = Date.now()
    await Promise.all([1, 2, 3, 4, 5].map(() => deliver(subscriptionId)))
    await until('five requests', () => received(path).length === 5)
    // Five requests at two a second need more than a second between the first and the last one.
    expect(Date.now() - start).toBeGreaterThan(1_000)
  })

  rule('C5.25', async () => {
    const { operator } = suite().roomy
    const { workspace } = await operator.workspaces.createWorkspace({ name: 'Operations' })
    const { workspaceId } = workspace!
    const purpose = SubscriptionPurpose.OPERATIONAL_EVENTS
    const endpoint = await subscribe('/200', { workspaceId, purpose, mappedFields: [] })
    const { subscriptionId } = await subscribe('/500', { workspaceId })
    const { leadId } = await leads().captureLead({ workspaceId, source: 'test', fields: { email: 'a@b.example' } })
    const idempotencyKey = randomUUID()
    await leads().createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey })
    const attempts = async () => (await leads().listDeliveryAttempts({ leadId })).attempts
    for (let number = 1; number <= 9; number += 1) {
      const found = await until('the attempt to end', async () => {
        const last = (await attempts()).at(-1)!
        return last.attemptNumber === number && last.responseStatus !== undefined ? last : undefined
      })
      if (number < 9) await leads().retryDeliveryAttempt({ attemptId: found.attemptId, idempotencyKey: randomUUID() })
    }
    await leads().updateSubscription({ subscriptionId, status: DISABLED })
    const events = await until('two events', () => {
      const all = received(endpoint.path).map(({ body, headers }) =>
        new Webhook(endpoint.secret).verify(body, headers as Record<string, string>),
      ) as { eventType: string; data: object }[]
      return all.length === 2 ? all : undefined
    })
    const { deliveryId } = (await attempts())[0]!
    const dataOf = (type: string) => events.find(({ eventType }) => eventType === type)?.data
    expect(dataOf('lead.delivery-failed')).toEqual({ reference: deliveryId, subscriptionId, deliveryId })
    expect(dataOf('subscription.disabled')).toEqual({ reference: subscriptionId, subscriptionId, reason: 'operator' })
  })

  rule('C5.26', async () => {
    const { subscriptionId } = await subscribe('/500')
    await settled(await deliver(subscriptionId))
    const read = async () => (await leads().getSubscription({ subscriptionId })).subscription!
    await until('the time of the first failure', async () => (await read()).failingSince)
    const failingSince = new Date(Date.now() - fiveDaysMs - 1)
    const mongo = new MongoClient(database.uri)
    const subscriptions = mongo.db(database.name).collection<{ _id: string }>('leadSubscriptions')
    await subscriptions.updateOne({ _id: subscriptionId }, { $set: { failingSince } })
    await mongo.close()
    await deliver(subscriptionId)
    await until('the disabling', async () => (await read()).status === DISABLED)
  })
}
