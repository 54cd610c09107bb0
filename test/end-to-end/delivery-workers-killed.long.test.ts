import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DeliveryStatus, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { deliverDuringKills, inFlightAtKills, type Victim } from '../chaos/deliveries.ts'
import { expectDeliveryGuarantees } from '../chaos/delivery-guarantees.ts'
import { startDeliveryWorker } from '../support/delivery-worker.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()
const receivers: Receiver[] = []
const clients: MongoClient[] = []
let stack: Stack
beforeAll(async () => {
  stack = await startStack({ database, cores: 2, gateways: 0, coreEnv })
})
afterAll(async () => {
  for (const receiver of receivers) await receiver.close()
  for (const client of clients) await client.close()
})

const leaseMs = 3_000
const destinations = 10
const coreEnv = { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32', DELIVERY_LEASE_MS: String(leaseMs), LOG_LEVEL: 'info' }

async function newReceiver() {
  const receiver = await startReceiver()
  receivers.push(receiver)
  return receiver
}

/** Opens the database of the stack's cores. */
function recordsOf({ demo }: Stack, name: string) {
  const client = new MongoClient(demo.mongodbUri)
  clients.push(client)
  return client.db(name)
}

/**
 * Kills processes while leads are delivered, and checks the guarantees. A short form of `npm run
 * chaos -- delivery`.
 */
async function expectGuaranteesDuringKills(victims: Victim[], stack: Stack, databaseName: string) {
  const result = await deliverDuringKills({
    stack,
    records: recordsOf(stack, databaseName),
    receiver: await newReceiver(),
    destinations,
    leads: 25,
    leadEveryMs: 120,
    killEveryMs: 400,
    victims,
    workers: 4,
    workerEnv: {},
    answerMs: 400,
  })
  expectDeliveryGuarantees(result, { destinations, leaseMs })
  expect(new Set(result.kills.map(({ victim }) => victim))).toEqual(new Set(victims))
  expect(inFlightAtKills(result)).toBeGreaterThan(0)
}

describe('deliveries', () => {
  it('are not lost or needlessly repeated when workers and cores are killed in turn', async () => {
    await expectGuaranteesDuringKills(['worker', 'core', 'worker'], stack, database.name)
  })

  it('are not lost or needlessly repeated when the database is killed', async () => {
    const ownEngine = await startStack({ cores: 2, gateways: 0, coreEnv })
    await expectGuaranteesDuringKills(
      ['engine', 'worker', 'worker', 'worker', 'worker', 'worker'],
      ownEngine,
      'service',
    )
  })
})

it('the late result of a worker that lost its lease has no effect', async () => {
  const receiver = await newReceiver()
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
