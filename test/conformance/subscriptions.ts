import { randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { expect } from 'vitest'
import { SubscriptionPurpose, SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { createDeliveryClient } from './delivery-client.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

const { DISABLED, ENABLED } = SubscriptionStatus

/** Tests of contract section 7: destinations and secrets of subscriptions, and destinations that answer 404. */
export function subscriptionRules(suite: () => Suite): void {
  const client = createDeliveryClient(suite)
  const { subscribe, deliver, settled, received } = client
  const leads = () => suite().roomy.operator.leads
  const test = (subscriptionId: string) => leads().sendTestDelivery({ subscriptionId, idempotencyKey: randomUUID() })

  rule('C7.18', async () => {
    const { workspace } = await suite().roomy.operator.workspaces.createWorkspace({ name: 'References' })
    const { workspaceId } = workspace!
    const purpose = SubscriptionPurpose.OPERATIONAL_EVENTS
    const endpoint = await subscribe('/200', { workspaceId, purpose, mappedFields: [] })
    const target = await subscribe('/200', { workspaceId })
    const fields = { email: 'ada@example.com' }
    const { leadId } = await leads().captureLead({ workspaceId, source: 'test', fields })
    const { subscriptionId } = target
    await leads().createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: randomUUID() })
    await test(endpoint.subscriptionId)
    await until('the lead', () => received(target.path).length === 1)
    await leads().updateSubscription({ subscriptionId, status: DISABLED })
    await until('two events', () => received(endpoint.path).length === 2)
    const referencesAt = ({ path, secret }: typeof target) =>
      received(path).map(({ body, headers }) => {
        const event = new Webhook(secret).verify(body, headers as Record<string, string>)
        return (event as { data: { reference: string } }).data.reference
      })
    expect(referencesAt(target)).toEqual([leadId])
    expect(referencesAt(endpoint).toSorted()).toEqual([subscriptionId, 'sub_test'].toSorted())
  })

  rule('C7.19', async () => {
    const idempotencyKey = randomUUID()
    const destinationUrl = `${suite().receiver.http}/200?key=${randomUUID()}`
    const settings = { ...client.settings(destinationUrl), idempotencyKey }
    const created = await leads().createSubscription(settings)
    const { subscriptionId, secret } = created
    const repeated = await leads().createSubscription(settings)
    expect(repeated.secret).toBe(secret)
    const listed = await leads().listSubscriptions({ workspaceId: settings.workspaceId })
    for (const shown of [
      created.subscription,
      repeated.subscription,
      listed.subscriptions.find((each) => each.subscriptionId === subscriptionId),
      (await leads().getSubscription({ subscriptionId })).subscription,
      (await leads().updateSubscription({ subscriptionId, automatic: false })).subscription,
    ])
      expect(shown?.destinationUrl).toBe(`${suite().receiver.http}/••••`)
    await test(subscriptionId)
    await until('the request', () => received(destinationUrl.slice(suite().receiver.http.length)).length === 1)
  })

  rule('C7.19.origin', async () => {
    const value = `Bearer ${randomUUID()}`
    const { subscriptionId } = await subscribe('/200', { headers: [{ name: 'Authorization', value }] })
    const other = await startReceiver(new URL(suite().receiver.http).hostname)
    try {
      const destinationUrl = `${other.http}/200`
      const { subscription } = await leads().updateSubscription({ subscriptionId, destinationUrl })
      expect([subscription?.headers, subscription?.droppedHeaders]).toEqual([[], ['authorization']])
      await test(subscriptionId)
      await until('the request', () => other.to('/200').length === 1)
      expect(JSON.stringify(other.to('/200')[0]!.rawHeaders)).not.toContain(value)
    } finally {
      await other.close()
    }
  })

  rule('C7.20', async () => {
    const statusAfter = async (disableAfterNotFound: number | undefined, answers: number) => {
      const { subscriptionId, subscription } = await subscribe('/404', { disableAfterNotFound })
      expect(subscription!.disableAfterNotFound).toBe(disableAfterNotFound ?? 5)
      for (let count = 0; count < answers; count += 1) await settled(await deliver(subscriptionId))
      return async () => (await leads().getSubscription({ subscriptionId })).subscription!.status
    }
    const [never, second, third] = await Promise.all([statusAfter(0, 6), statusAfter(2, 2), statusAfter(3, 2)])
    await until('the second 404 to disable', async () => (await second()) === DISABLED)
    expect([await never(), await third()]).toEqual([ENABLED, ENABLED])
  })
}
