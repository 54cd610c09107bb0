import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { until } from '../support/until.ts'
import { createDeliveryClient } from './delivery-client.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

/** Tests of contract section 7: the event feed and the hand-off to workflows. */
export function eventFeedRules(suite: () => Suite): void {
  const client = createDeliveryClient(suite)
  const operator = () => suite().roomy.operator

  async function newWorkspace(name: string) {
    const { workspace } = await operator().workspaces.createWorkspace({ name })
    return workspace!.workspaceId
  }

  async function* eventsOf(workspaceId: string) {
    for (let cursor = ''; ; ) {
      const page = await operator().events.listEvents({ workspaceId, cursor, waitSeconds: 5 })
      yield* page.events
      cursor = page.cursor
    }
  }

  /** Reads the feed until it has events of all these types. Returns the types of the events. */
  async function typesUntil(workspaceId: string, last: string) {
    const types: string[] = []
    for await (const { type } of eventsOf(workspaceId)) {
      types.push(type)
      if (type === last) return types
    }
    return types
  }

  rule('C7.15', async () => {
    const workspaceId = await newWorkspace('Hand-offs')
    const { leads } = operator()
    const target = await client.subscribe('/400', { workspaceId })
    const { subscriptionId } = target
    const workflow = { workflowId: 'follow-up', when: 'ended' }
    await leads.updateSubscription({ subscriptionId, workflow })
    const { leadId } = await leads.captureLead({ workspaceId, source: 'test', fields: { email: 'ada@example.com' } })
    const request = { leadId, subscriptionId, idempotencyKey: randomUUID() }
    const { attempt } = await leads.createDeliveryAttempt(request)
    const handedOff = async () => (await leads.listDeliveries({ workspaceId, leadId })).deliveries[0]?.handoff
    expect(await until('the hand-off', handedOff)).toMatchObject({ workflowId: 'follow-up', outcome: 'failed' })
    await leads.retryDeliveryAttempt({ attemptId: attempt!.attemptId, idempotencyKey: randomUUID() })
    await until('the second end', async () => client.received(target.path).length === 2)
    await leads.updateSubscription({ subscriptionId, status: 2 })
    const types = await typesUntil(workspaceId, 'subscription.disabled')
    expect(types.filter((type) => type === 'workflow.handoff')).toHaveLength(1)
  })

  rule('C7.16', async () => {
    const workspaceId = await newWorkspace('Feed')
    const { leads, events } = operator()
    const leadIds: string[] = []
    for (const email of ['ada@example.com', 'bob@example.com']) {
      const { leadId } = await leads.captureLead({ workspaceId, source: 'test', fields: { email } })
      leadIds.push(leadId)
    }
    const read: { leadId: string; cursor: string }[] = []
    for await (const event of eventsOf(workspaceId)) if (read.push(event) === leadIds.length) break
    expect(read.map(({ leadId }) => leadId).toSorted()).toEqual(leadIds.toSorted())
    const rest = await events.listEvents({ workspaceId, cursor: read[0]!.cursor })
    expect(rest.events.map(({ leadId }) => leadId)).toEqual([read[1]!.leadId])
    for await (const { events: streamed } of events.followEvents({ workspaceId })) {
      expect(streamed.map(({ leadId }) => leadId)).toEqual(read.map(({ leadId }) => leadId))
      break
    }
  })
}
