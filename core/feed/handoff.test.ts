import { createClient } from '@connectrpc/connect'
import { expect, it } from 'vitest'
import { EventsService } from '#proto/events/v1/events_pb.js'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { hasFailed } from '../test/cores.ts'
import { issuesOf, testDeliveries } from '../test/deliveries.ts'
import { flushFeed } from '../test/feed.ts'
import { transportTo } from '../test/transports.ts'
import { accessOf } from '../transport/caller.ts'
import { markAnnounced } from './lead-feed.ts'

const deliveries = testDeliveries()

type Scene = Awaited<ReturnType<typeof deliveries.newScene>>

/** Returns the events of a workspace as texts, after the feed is complete. */
async function feedOf({ workspaceId }: Scene) {
  const [core] = deliveries.cores
  await flushFeed(core!)
  const client = createClient(EventsService, transportTo(core!))
  const token = await accessOf(core!).issue({ subject: 'flow', scopes: ['events:read'], workspaceId })
  const { events } = await client.listEvents({ limit: 100 }, { headers: { authorization: `Bearer ${token}` } })
  return events.map(({ type, workflowId, leadId, delivery }) => ({ type, workflowId, leadId, delivery }))
}

const typesOf = (events: { type: string }[]) => events.map(({ type }) => type)

async function handsOff({ operator, subscriptionId }: Scene, when: string) {
  await operator.updateSubscription({ subscriptionId, workflow: { workflowId: 'flow-1', when } })
}

it('a delivery that fails, is repeated and accepted is handed off once', async () => {
  const scene = await deliveries.newScene()
  const { operator, subscriptionId, leadId } = scene
  await handsOff(scene, 'ended')
  const { attemptId, deliveryId } = await scene.send()
  const worker = await deliveries.worker()
  await worker.drain(400)
  await operator.retryDeliveryAttempt({ attemptId, idempotencyKey: 'again' })
  await worker.drain(200)
  const events = await feedOf(scene)
  expect(typesOf(events)).toEqual(['lead.captured', 'lead.delivery-failed', 'lead.delivered', 'workflow.handoff'])
  expect(events[3]).toMatchObject({
    workflowId: 'flow-1',
    leadId,
    delivery: { subscriptionId, deliveryId, attemptId, outcome: 'failed' },
  })
  const { deliveries: shown } = await operator.listDeliveries({ leadId })
  expect(shown[0]?.handoff).toMatchObject({ workflowId: 'flow-1', outcome: 'failed' })
})

it.each(
  someOf(
    [
      ['accepted', 400, 0],
      ['accepted', 200, 1],
      ['failed', 400, 1],
      ['failed', 200, 0],
      ['ended', 400, 1],
      ['ended', 200, 1],
    ] as const,
    2,
  ),
)('a hand-off when %s after status %i is recorded %i times', async (when, status, expected) => {
  const scene = await deliveries.newScene()
  await handsOff(scene, when)
  await scene.send()
  await (await deliveries.worker()).drain(status)
  const found = typesOf(await feedOf(scene)).filter((type) => type === 'workflow.handoff')
  expect(found).toHaveLength(expected)
})

it('deliveries that are announced together keep their own number of attempts and hand-off', async () => {
  const { database } = deliveries.cores[0]!
  const at = new Date(0)
  const attempt = { attemptId: 'att', correlationId: '', manual: false, createdAt: at, updatedAt: at }
  const ended = (attempts: number, outcome?: 'accepted' | 'failed', workflowId = 'flow') => ({
    read: {
      _id: `dlv_${attempts}_${outcome}_${workflowId}`,
      workspaceId: 'ws_together',
      eventType: 'lead.ready-for-delivery' as const,
      subscriptionId: 'sub',
      destination: 'sub',
      status: outcome ?? ('accepted' as const),
      attempts: Array.from({ length: attempts }, (_, index) => ({ ...attempt, attemptId: `att_${index}` })),
      operations: [{ key: `together ${attempts} ${outcome} ${workflowId}`, inputHash: '', attemptId: '' }],
      createdAt: at,
      updatedAt: at,
    },
    handoff: outcome && { workflowId, outcome, at },
  })
  const announced = [ended(1), ended(2), ended(1, 'accepted'), ended(1, 'failed'), ended(1, 'failed', 'other flow')]
  await database.collections.deliveries.insertMany(announced.map(({ read }) => read))
  await markAnnounced(deliveries.cores[0]!, announced)
  const found = await database.collections.deliveries.find({ workspaceId: 'ws_together' }).toArray()
  const marks = new Map(found.map(({ _id, announcedAttempts, handoff }) => [_id, { announcedAttempts, handoff }]))
  for (const { read, handoff } of announced)
    expect(marks.get(read._id)).toEqual({ announcedAttempts: read.attempts.length, handoff })
})

itLong('a core that dies between any two writes delays the events of a delivery and repeats none', async () => {
  for (let writes = 0, died = true; died; writes += 1) {
    const scene = await deliveries.newScene()
    await handsOff(scene, 'accepted')
    await scene.send()
    await (await deliveries.worker()).drain(200)
    const mortal = deliveries.mortalCore(writes)
    died = await hasFailed(flushFeed(mortal))
    expect(typesOf(await feedOf(scene))).toEqual(['lead.captured', 'lead.delivered', 'workflow.handoff'])
    expect(typesOf(await feedOf(scene))).toHaveLength(3)
  }
})

it('a subscription that is disabled is in the feed once', async () => {
  const scene = await deliveries.newScene()
  await scene.operator.updateSubscription({ subscriptionId: scene.subscriptionId, status: 2 })
  await Promise.all(deliveries.cores.map((core) => flushFeed(core)))
  expect(typesOf(await feedOf(scene)).toSorted()).toEqual(['lead.captured', 'subscription.disabled'])
})

it.each([
  [{ workflowId: 'x'.repeat(129), when: 'ended' }, '/workflow/workflowId maxLength'],
  [{ workflowId: 'x', when: 'sometimes' }, '/workflow/when enum'],
])('a workflow that violates a rule is refused (%#)', async (workflow, path) => {
  const { operator, subscriptionId } = await deliveries.newScene()
  expect(await issuesOf(operator.updateSubscription({ subscriptionId, workflow }))).toEqual([path])
})
