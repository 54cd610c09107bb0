import { setTimeout as delay } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { afterAll, expect, it } from 'vitest'
import type { DeliveryDocument } from '../../core/deliveries/model.ts'
import { startDeliveryWorker } from '../support/delivery-worker.ts'
import { operatorOf } from '../support/operator.ts'
import { startReceiver } from '../support/receiver.ts'
import { startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { chaosConfig } from './config.ts'

const count = chaosConfig().CHAOS_RECOVERED
const perSecond = 80
const killEveryMs = 1_500
const capturesAtOnce = 50
const database = testDatabase()
const closing: (() => Promise<unknown>)[] = []
afterAll(() => Promise.all(closing.map((close) => close())))

it(`a recovery of ${count} failed deliveries sends each one again, within the rate, while workers and cores are killed`, async () => {
  const coreEnv = { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32', LOG_LEVEL: 'info' }
  const stack = await startStack({ database, cores: 2, gateways: 0, coreEnv })
  const receiver = await startReceiver()
  const client = new MongoClient(stack.demo.mongodbUri)
  closing.push(() => client.close(), receiver.close)
  const deliveries = client.db(database.name).collection<DeliveryDocument>('deliveries')
  const operators = stack.cores.map(({ url }) => operatorOf(url, stack.demo.serviceToken))
  const workers = await Promise.all([1, 2, 3].map(() => startDeliveryWorker(stack, {})))

  let isBroken = true
  const received: { id: string; at: number }[] = []
  receiver.on('/recovered', ({ headers }, response) => {
    if (!isBroken) received.push({ id: String(headers['webhook-id']), at: Date.now() })
    response.writeHead(isBroken ? 400 : 200).end()
  })
  const { workspace } = await operators[0]!.workspaces.createWorkspace({ name: 'Recovery' })
  const { workspaceId } = workspace!
  const destinationUrl = `${receiver.http}/recovered`
  const subscription = { workspaceId, destinationUrl, mappedFields: ['email'], automatic: true }
  const { subscriptionId } = await operators[0]!.leads.createSubscription(subscription)
  const since = new Date()
  for (let start = 0; start < count; start += capturesAtOnce) {
    const size = Math.min(capturesAtOnce, count - start)
    await Promise.all(
      Array.from({ length: size }, (_, index) =>
        operators[index % 2]!.leads.captureLead({
          workspaceId,
          source: 'recovery',
          fields: { email: `${start + index}@example.com` },
        }),
      ),
    )
  }
  const countOf = (status: DeliveryDocument['status']) => deliveries.countDocuments({ workspaceId, status })
  await progress(() => countOf('failed'))
  const failed = await deliveries.find({ workspaceId }, { projection: { _id: 1 } }).toArray()

  isBroken = false
  await operators[0]!.leads.updateSubscription({ subscriptionId, maxPerSecond: perSecond })
  await operators[0]!.leads.recoverDeliveries({
    subscriptionId,
    since: { seconds: BigInt(Math.floor(since.getTime() / 1000) - 1), nanos: 0 },
  })
  const done = new AbortController()
  let kills = 0
  const killing = (async () => {
    for (; !done.signal.aborted; kills += 1) {
      await delay(killEveryMs, undefined, { signal: done.signal }).catch(() => {})
      if (done.signal.aborted) return
      const worker = workers[kills % workers.length]!
      if (kills % 3 === 2) await stack.cores[kills % 2]!.killAndRestart()
      else {
        await worker.kill()
        await worker.start()
      }
    }
  })()
  await progress(() => countOf('accepted'))
  done.abort()
  await killing

  const { subscription: after } = await until('the end of the recovery', async () => {
    const found = await operators[0]!.leads.getSubscription({ subscriptionId })
    return found.subscription?.recovery?.finishedAt ? found : undefined
  })
  const doubles = received.length - new Set(received.map(({ id }) => id)).size
  console.table({
    recovered: after!.recovery!.recovered,
    received: received.length,
    doubles,
    kills,
    'requests in the fullest second': mostWithin(1_000, received),
    'requests in the fullest ten seconds': mostWithin(10_000, received),
  })
  expect(new Set(received.map(({ id }) => id))).toEqual(new Set(failed.map(({ _id }) => _id)))
  expect(after!.recovery!.recovered).toBe(count)
  expect(kills).toBeGreaterThan(0)
  // Requests that a worker claimed before it stalled arrive late, together with the requests of the next second.
  expect(mostWithin(10_000, received)).toBeLessThanOrEqual(10 * perSecond)
  await Promise.all(workers.map((worker) => worker.process().stop()))
})

/**
 * Waits until `counted` returns the number of all deliveries. Fails only if too much time passes without progress.
 */
async function progress(counted: () => Promise<number>) {
  for (let before = -1; before < count; )
    before = await until('progress of deliveries', async () => {
      const now = await counted().catch(() => before)
      return now === count || now > before ? now : undefined
    })
}

/** Returns the largest number of requests that the receiver got within any period of `ms`. */
function mostWithin(ms: number, received: { at: number }[]): number {
  const times = received.map(({ at }) => at).sort((a, b) => a - b)
  let most = 0
  for (let end = 0, start = 0; end < times.length; end += 1) {
    while (times[end]! - times[start]! >= ms) start += 1
    most = Math.max(most, end - start + 1)
  }
  return most
}
