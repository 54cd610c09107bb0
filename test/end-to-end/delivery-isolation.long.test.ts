import { beforeAll, expect, it } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { startDeliveryWorker } from '../support/delivery-worker.ts'
import type { Operator } from '../support/operator.ts'
import { startReceiver } from '../support/receiver.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()
let stack: Stack
let leads: Operator['leads']
beforeAll(async () => {
  // The deadline is so long that hanging attempts do not end during this test.
  const coreEnv = { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32', DELIVERY_ATTEMPT_DEADLINE_MS: '300000' }
  stack = await startStack({ database, cores: 1, gateways: 0, coreEnv })
  leads = stack.operator().leads
})

it('5 hanging destinations of 50 do not block deliveries to the other 45', async () => {
  const receiver = await startReceiver()
  const { workspaceId } = stack.demo
  const paths = Array.from({ length: 50 }, (_, index) => `${index < 5 ? '/hang' : '/200'}?${index}`)
  const subscriptions = await Promise.all(
    paths.map((path) =>
      leads.createSubscription({ workspaceId, destinationUrl: `${receiver.http}${path}`, automatic: true }),
    ),
  )
  const hanging = new Set(subscriptions.slice(0, 5).map(({ subscriptionId }) => subscriptionId))
  const captureTen = () =>
    Promise.all(Array.from({ length: 10 }, () => leads.captureLead({ workspaceId, source: 'test', fields: {} })))

  // The hanging destinations get their deliveries first. They get 50 deliveries, but the worker
  // runs at most 40 attempts concurrently.
  await captureTen()
  const worker = await startDeliveryWorker(stack, { DELIVERY_CONCURRENCY: '40', DELIVERY_PER_DESTINATION: '10' })
  const arrived = () => receiver.requests.filter(({ path }) => path.startsWith('/200')).length
  await until('the first 450', () => arrived() === 450)
  await until('all five to hang', () => paths.slice(0, 5).every((path) => receiver.to(path).length > 0))
  for (let round = 2; round <= 4; round += 1) {
    await captureTen()
    await until(`${450 * round} arrivals`, () => arrived() === 450 * round)
  }

  for (const path of paths.slice(5)) expect(receiver.to(path)).toHaveLength(40)
  const failed = await leads.listDeliveries({
    workspaceId,
    statuses: [DeliveryStatus.FAILED, DeliveryStatus.RETRY_SCHEDULED, DeliveryStatus.DEAD_LETTERED],
  })
  expect(failed.deliveries).toEqual([])
  await until('only hanging deliveries to remain', async () => {
    const { deliveries } = await leads.listDeliveries({ workspaceId, statuses: [DeliveryStatus.SENDING], limit: 100 })
    return deliveries.every(({ subscriptionId }) => hanging.has(subscriptionId)) && deliveries.length > 0
  })
  worker.process().kill('SIGKILL')
  await receiver.close()
})
