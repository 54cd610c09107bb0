import { setTimeout as delay } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { AttemptPhase, DeliveryStatus, FailureReason, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { startDeliveryWorker, type WorkerProcess } from '../support/delivery-worker.ts'
import type { Operator } from '../support/operator.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()
/**
 * Response time of the slow destination. The worker can complete the attempt, because the deadline
 * of an attempt (10 s) and the default grace time of a stopping worker (11 s) are longer.
 */
const slowAnswerMs = 8_500
let stack: Stack
let receiver: Receiver
let leads: Operator['leads']
let records: MongoClient
beforeAll(async () => {
  stack = await startStack({
    database,
    cores: 1,
    gateways: 0,
    coreEnv: { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32', LOG_LEVEL: 'info' },
  })
  receiver = await startReceiver()
  leads = stack.operator().leads
  records = new MongoClient(stack.demo.mongodbUri)
})
afterAll(async () => {
  await receiver?.close()
  await records?.close()
})

/** Creates deliveries to a path of the receiver. */
async function deliverTo(path: string, count: number) {
  const { workspaceId } = stack.demo
  const { subscriptionId } = await leads.createSubscription({ workspaceId, destinationUrl: receiver.http + path })
  const deliveryIds: string[] = []
  for (let index = 0; index < count; index += 1) {
    const { leadId } = await leads.captureLead({ workspaceId, source: 'test', fields: {} })
    const idempotencyKey = `${path.slice(1)}-${index}`
    const { attempt } = await leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey })
    deliveryIds.push(attempt!.deliveryId)
  }
  return { subscriptionId, deliveryIds }
}

const attemptsOf = async (deliveryId: string) => (await leads.listDeliveryAttempts({ deliveryId })).attempts

async function signalAndWait(worker: WorkerProcess, signals: NodeJS.Signals[]) {
  for (const signal of signals) worker.process().kill(signal)
  return worker.process().exited
}

it.each([
  ['once', ['SIGTERM']],
  ['twice', ['SIGTERM', 'SIGTERM']],
  ['as SIGINT and SIGTERM', ['SIGINT', 'SIGTERM']],
] as [string, NodeJS.Signals[]][])(
  'a worker that gets a stop signal %s completes a running request of 8.5 s',
  async (name, signals) => {
    const path = `/slow-${name.replaceAll(' ', '-')}`
    receiver.on(path, async (_request, response) => {
      await delay(slowAnswerMs)
      response.writeHead(200).end()
    })
    const worker = await startDeliveryWorker(stack)
    const {
      deliveryIds: [deliveryId = ''],
    } = await deliverTo(path, 1)
    await until('the request', () => receiver.to(path).length === 1)
    const [first, ...rest] = signals
    worker.process().kill(first!)
    if (rest.length > 0)
      await until('the worker to stop', () => worker.process().output().includes('delivery worker stops'))
    expect(await signalAndWait(worker, rest)).toMatchObject({ code: 0 })

    expect(await attemptsOf(deliveryId)).toMatchObject([
      { attemptNumber: 1, status: DeliveryStatus.ACCEPTED, responseClass: ResponseClass.ACCEPTED, responseStatus: 200 },
    ])
    expect(receiver.to(path)).toHaveLength(1)
  },
  40_000,
)

it('a worker without grace time records its running attempt and releases the deliveries it has not started', async () => {
  receiver.on('/never-answers', () => new Promise(() => {}))
  const worker = await startDeliveryWorker(stack, { DELIVERY_GRACE_MS: '0', DELIVERY_PER_DESTINATION: '1' })
  const { subscriptionId } = await deliverTo('/never-answers', 3)
  await until('the request', () => receiver.to('/never-answers').length === 1)
  const deliveries = records.db(database.name).collection('deliveries')
  await signalAndWait(worker, ['SIGTERM'])
  const left = await deliveries.find({ subscriptionId }).toArray()
  expect(left).toHaveLength(3)
  const sentId = String(receiver.to('/never-answers')[0]!.headers['x-service-webhook-id'])
  expect(await attemptsOf(sentId)).toMatchObject([
    {
      attemptNumber: 1,
      status: DeliveryStatus.RETRY_SCHEDULED,
      responseClass: ResponseClass.NETWORK_ERROR,
      failureReason: FailureReason.NETWORK_ERROR,
      failurePhase: AttemptPhase.HEADERS,
    },
  ])
  for (const { _id, claim, dueAt, attempts } of left) {
    expect(claim).toBeUndefined()
    expect(dueAt).toBeInstanceOf(Date)
    if (String(_id) !== sentId) expect(attempts).toMatchObject([{ attemptId: expect.any(String) }])
  }
})
