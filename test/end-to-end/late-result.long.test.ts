import { beforeAll, expect, it } from 'vitest'
import { DeliveryStatus, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { atFileEnd } from '../support/clean-up.ts'
import { startDeliveryWorker } from '../support/delivery-worker.ts'
import { startReceiver } from '../support/receiver.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()
const coreEnv = { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32', DELIVERY_LEASE_MS: '3000', LOG_LEVEL: 'info' }
let stack: Stack
beforeAll(async () => {
  stack = await startStack({ database, cores: 2, gateways: 0, coreEnv })
})

it('the late result of a worker that lost its lease has no effect', async () => {
  const receiver = await startReceiver()
  atFileEnd(receiver.close)
  const late = Promise.withResolvers<void>()
  const timely = Promise.withResolvers<void>()
  receiver.on('/late-for-the-first', async (_request, response) => {
    const isFirst = receiver.to('/late-for-the-first').length === 1
    await (isFirst ? late : timely).promise
    response.writeHead(isFirst ? 410 : 200).end()
  })
  const { leads } = stack.operator()
  const { workspaceId } = stack.demo
  const destinationUrl = `${receiver.http}/late-for-the-first`
  const { subscriptionId } = await leads.createSubscription({ workspaceId, destinationUrl })
  const { leadId } = await leads.captureLead({ workspaceId, source: 'test', fields: {} })
  const stopped = await startDeliveryWorker(stack)
  const { attempt } = await leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: 'once' })
  const { deliveryId } = attempt!
  const attempts = async () => (await leads.listDeliveryAttempts({ deliveryId })).attempts
  await until('the first request', () => receiver.to('/late-for-the-first').length === 1)
  stopped.process().kill('SIGSTOP')
  const other = await startDeliveryWorker(stack)
  await until('the other worker to take over', () => receiver.to('/late-for-the-first').length === 2)
  const before = await attempts()
  expect(before).toMatchObject([{ attemptNumber: 1, status: DeliveryStatus.SENDING }])
  late.resolve()
  stopped.process().kill('SIGCONT')
  await until('the late result', () =>
    stopped.process().output().includes('results were reported after their leases were lost'),
  )

  expect(await attempts()).toEqual(before)
  timely.resolve()
  await until(
    'the result of the other worker',
    async () => (await attempts()).at(-1)?.status !== DeliveryStatus.SENDING,
  )

  // There must be one attempt with one outcome, and the late 410 must not disable the subscription.
  expect(await attempts()).toMatchObject([
    { attemptNumber: 1, responseClass: ResponseClass.ACCEPTED, responseStatus: 200 },
  ])
  const sent = receiver.to('/late-for-the-first')
  for (const { body } of sent) expect(body).toEqual(sent[0]?.body)
  expect((await leads.getSubscription({ subscriptionId })).subscription?.disabledReason).toBe(0)
  for (const worker of [stopped, other]) await worker.kill()
})
