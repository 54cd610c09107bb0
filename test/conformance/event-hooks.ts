import { randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { expect } from 'vitest'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { until } from '../support/until.ts'
import { createDeliveryClient } from './delivery-client.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

/** Tests of contract section 7: event policies of subscriptions, and event hooks. */
export function eventHookRules(suite: () => Suite): void {
  const { subscribe, received } = createDeliveryClient(suite)
  const operator = () => suite().roomy.operator

  async function newWorkspace(name: string) {
    const { workspace } = await operator().workspaces.createWorkspace({ name })
    return workspace!.workspaceId
  }

  async function capture(workspaceId: string, source = 'test') {
    const fields = { email: 'ada@example.com', phone: 'not mapped' }
    return (await operator().leads.captureLead({ workspaceId, source, fields })).leadId
  }

  /** Returns the verified events at a path, by type. */
  const eventsAt = ({ path, secret }: { path: string; secret: string }) =>
    received(path)
      .map(({ body, headers }) => new Webhook(secret).verify(body, headers as Record<string, string>))
      .map((event) => event as { eventType: string; data: Record<string, string> })
      .toSorted((one, other) => one.eventType.localeCompare(other.eventType))

  rule('C7.14', async () => {
    const workspaceId = await newWorkspace('Policies')
    const automatic = { workspaceId, automatic: true }
    const ready = 'lead.ready-for-delivery'
    const types = [ready, 'lead.captured', 'lead.delivered']
    const all = await subscribe('/200', { ...automatic, policy: { types }, sentNames: { email: 'mail' } })
    const forms = await subscribe('/200', { ...automatic, policy: { sources: ['offline-form', 'pre-chat-form'] } })
    const leadId = await capture(workspaceId)
    await until('three events', () => received(all.path).length === 3)
    const [captured, delivered, sent] = eventsAt(all)
    expect(captured).toMatchObject({ eventType: 'lead.captured', data: { reference: leadId, mail: 'ada@example.com' } })
    expect(delivered).toMatchObject({ eventType: 'lead.delivered', data: { leadId } })
    expect(sent).toMatchObject({ eventType: ready, data: { reference: leadId, mail: 'ada@example.com' } })
    expect(Object.keys(sent!.data)).toEqual(['reference', 'mail'])
    expect(received(forms.path)).toEqual([])
    const request = { leadId, subscriptionId: forms.subscriptionId, idempotencyKey: randomUUID() }
    await operator().leads.createDeliveryAttempt(request)
    await until('the requested delivery', () => received(forms.path).length === 1)
    expect(eventsAt(forms)).toMatchObject([{ eventType: ready, data: { reference: leadId, email: 'ada@example.com' } }])
  })

  rule('C7.17', async () => {
    const { hooks, leads } = operator()
    const workspaceId = await newWorkspace('Hooks')
    const path = `/200?${randomUUID()}`
    const destinationUrl = `${suite().receiver.http}${path}`
    const eventTypes = ['lead.captured', 'subscription.disabled']
    const { hookId, secret } = await hooks.createHook({ workspaceId, destinationUrl, eventTypes })
    const { subscriptionId } = await subscribe('/200', { workspaceId })
    const leadId = await capture(workspaceId)
    await leads.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    await until('two events', () => received(path).length === 2)
    expect(eventsAt({ path, secret })).toMatchObject([
      { eventType: 'lead.captured', data: { reference: leadId } },
      { eventType: 'subscription.disabled', data: { reference: subscriptionId, reason: 'operator' } },
    ])
    const { deliveries } = await leads.listDeliveries({ workspaceId, subscriptionId: hookId })
    expect(deliveries.map(({ latestAttempt }) => latestAttempt?.eventType).toSorted()).toEqual(eventTypes)
    const listed = await leads.listSubscriptions({ workspaceId })
    expect(listed.subscriptions.map((each) => each.subscriptionId)).toEqual([subscriptionId])
    expect((await hooks.listHooks({ workspaceId })).hooks.map((each) => each.hookId)).toEqual([hookId])
  })
}
