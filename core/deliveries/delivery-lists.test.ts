import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isLong } from '../../test/support/is-long.ts'
import {
  type DeliveryDocument,
  type DeliveryQuery,
  type DeliveryStatus,
  deliveryStatuses,
} from '../deliveries/model.ts'
import { bareCore } from '../test/core-with.ts'
import { testDeliveries } from '../test/deliveries.ts'
import { openMeasuredClient } from '../test/query-cost.ts'
import { findDeliveries } from './deliveries.ts'
import { countPaused, pausedCounts, subscriptionsPaused, subscriptionsWaiting } from './pauses.ts'

const workspaceId = 'ws_large'
const firstAt = Date.UTC(2026, 0, 1)
const limit = 51
const count = isLong ? 200_000 : 1_500
/** Number of deliveries with each status except `accepted`. These deliveries are older than all others. */
const rare = 3

const test = testDeliveries({ count: 1, clears: false })
let client: Awaited<ReturnType<typeof openMeasuredClient>>
beforeAll(async () => {
  client = await openMeasuredClient(test.uri, test.name)
  await insertAll()
})
afterAll(() => client.close())

const statusOf = (index: number): DeliveryStatus =>
  index < rare * deliveryStatuses.length ? deliveryStatuses[index % deliveryStatuses.length]! : 'accepted'

function document(index: number): DeliveryDocument {
  const at = new Date(firstAt + index)
  const id = String(index).padStart(8, '0')
  const status = statusOf(index)
  const subscriptionId = index % 10 === 9 ? 'sub_small' : 'sub_large'
  return {
    _id: `dlv_${id}`,
    workspaceId,
    eventType: 'lead.ready-for-delivery',
    leadId: `lead_${Math.floor(index / 5)}`,
    subscriptionId,
    destination: subscriptionId,
    status,
    attempts: [{ attemptId: `att_${id}`, correlationId: 'c', manual: false, createdAt: at, updatedAt: at }],
    operations: [{ key: id, inputHash: '', attemptId: `att_${id}` }],
    createdAt: at,
    updatedAt: at,
    ...(['pending', 'sending', 'retry_scheduled'].includes(status) ? { dueAt: at } : {}),
  }
}

async function insertAll() {
  const deliveries = client.db.collection<DeliveryDocument>('deliveries')
  for (let start = 0; start < count; start += 2000) {
    const part = Array.from({ length: Math.min(2000, count - start) }, (_, index) => document(start + index))
    await deliveries.insertMany(part, { ordered: false })
  }
}

async function costOf<T>(run: () => Promise<T>) {
  const { answer, sent } = await client.commandsOf(run)
  const cost = { calls: 0, keys: 0, documents: 0 }
  await client.add(cost, sent)
  return { answer, cost }
}

const core = () => bareCore({ db: { deliveries: client.db.collection('deliveries') } })
const questions: [string, Omit<DeliveryQuery, 'workspaceId'>][] = [
  ['of a workspace', {}],
  ['of a subscription', { subscriptionId: 'sub_large' }],
  ['of a lead', { leadId: 'lead_7' }],
  ['of a lead with some statuses', { leadId: 'lead_0', statuses: ['pending', 'failed'] }],
  ...deliveryStatuses.flatMap((status): [string, Omit<DeliveryQuery, 'workspaceId'>][] => [
    [`of a workspace with the status ${status}`, { statuses: [status] }],
    [`of a subscription with the status ${status}`, { subscriptionId: 'sub_large', statuses: [status] }],
  ]),
  ['of a workspace between two times', { since: new Date(firstAt + 1000), until: new Date(firstAt + 2000) }],
  [
    'of a subscription with one status between two times',
    {
      subscriptionId: 'sub_large',
      statuses: ['accepted'],
      since: new Date(firstAt + 1000),
      until: new Date(firstAt + 2000),
    },
  ],
  ['with two rare statuses', { statuses: ['failed', 'dead_lettered'] }],
  ['of a subscription with two rare statuses', { subscriptionId: 'sub_large', statuses: ['failed', 'sending'] }],
]

describe(`lists of ${count} deliveries`, () => {
  it.each(questions)('the list %s reads at most a page of each status', async (_, query) => {
    const middle = Math.floor(count / 2)
    const before = { at: new Date(firstAt + middle), id: `dlv_${String(middle).padStart(8, '0')}` }
    for (const from of [undefined, before]) {
      const { answer, cost } = await costOf(() =>
        findDeliveries(core(), { workspaceId, ...query, before: from }, limit),
      )
      const expected = Array.from({ length: count }, (__, index) => document(count - 1 - index))
        .filter(
          (each) =>
            (!query.subscriptionId || each.subscriptionId === query.subscriptionId) &&
            (!query.leadId || each.leadId === query.leadId) &&
            (!query.statuses || query.statuses.includes(each.status)) &&
            (!query.since || each.createdAt >= query.since) &&
            (!query.until || each.createdAt < query.until) &&
            (!from || each._id < from.id),
        )
        .slice(0, limit)
      expect(answer.map(({ deliveryId }) => deliveryId)).toEqual(expected.map(({ _id }) => _id))
      // Besides the page, a list reads the deliveries with rare statuses. A query may read up to three
      // more keys to detect the end of a page. The list of a lead reads all five deliveries of the lead.
      const others = query.leadId || query.statuses ? 0 : deliveryStatuses.length - 1
      expect(cost.documents).toBeLessThanOrEqual(Math.max(expected.length, 5) + 1 + others * rare)
      expect(cost.keys).toBeLessThanOrEqual(Math.max(expected.length, 5) + 3 + others * (rare + 3))
    }
  })

  it('the counts and lists of held deliveries read only held deliveries', async () => {
    for (const ask of [
      () => pausedCounts(core(), ['sub_large', 'sub_small']),
      () => countPaused(core(), 'sub_large', 3001),
      () => subscriptionsPaused(core()),
      () => subscriptionsWaiting(core()),
    ]) {
      const { cost } = await costOf<unknown>(ask)
      expect(cost.keys).toBeLessThanOrEqual(5 * rare)
    }
  })
})
