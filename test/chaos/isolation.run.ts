import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, expect, it } from 'vitest'
import { quantile } from '../../bench/table.ts'
import { startDeliveryWorker } from '../support/delivery-worker.ts'
import { startReceiver } from '../support/receiver.ts'
import { startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { chaosConfig } from './config.ts'

const config = chaosConfig()
const destinations = 50
const answerMs = 5
const database = testDatabase()
const closing: (() => Promise<unknown>)[] = []
afterAll(() => Promise.all(closing.map((close) => close())))

it('if 5 of 50 destinations hang, the latency of the other 45 does not double', async () => {
  const stack = await startStack({
    database,
    cores: 2,
    gateways: 0,
    coreEnv: { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32' },
  })
  const operator = stack.operator()
  const receiver = await startReceiver()
  closing.push(receiver.close)
  await startDeliveryWorker(stack)

  /**
   * Sends deliveries to the healthy destinations. Returns the milliseconds from the creation of
   * each delivery to its request.
   */
  async function measure(hanging: number, round: number): Promise<number[]> {
    const { workspace } = await operator.workspaces.createWorkspace({ name: 'Isolation' })
    const { workspaceId } = workspace!
    const latencies: number[] = []
    const subscriptionIds: string[] = []
    for (let index = 0; index < destinations; index += 1) {
      const path = `/measured?${round}-${hanging}-${index}`
      receiver.on(path, async (_request, response) => {
        if (index < hanging) return
        const { occurredAt } = JSON.parse(receiver.requests.at(-1)!.body.toString())
        latencies.push(Date.now() - Date.parse(occurredAt))
        await delay(answerMs)
        response.writeHead(200).end()
      })
      const destinationUrl = `${receiver.http}${path}`
      subscriptionIds.push((await operator.leads.createSubscription({ workspaceId, destinationUrl })).subscriptionId)
    }
    const { leadId } = await operator.leads.captureLead({ workspaceId, source: 'test', fields: {} })
    const total = config.ISOLATION_PER_SECOND * config.ISOLATION_SECONDS
    const began = performance.now()
    const calls: Promise<unknown>[] = []
    let healthy = 0
    for (let sent = 0; sent < total; sent += 1) {
      await delay(Math.max(0, began + (sent * 1000) / config.ISOLATION_PER_SECOND - performance.now()))
      if (sent % destinations >= hanging) healthy += 1
      const subscriptionId = subscriptionIds[sent % destinations]!
      calls.push(operator.leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: `${sent}` }))
    }
    await Promise.all(calls)
    await until('all healthy deliveries', () => latencies.length === healthy)
    // Ends the hanging requests, so that they do not affect the next measurement.
    for (const subscriptionId of subscriptionIds.slice(0, hanging)) {
      await operator.leads.updateSubscription({ subscriptionId, status: 2 })
    }
    await until('the hanging requests to end', () => receiver.openConnections() < destinations)
    return latencies
  }

  await measure(0, 0)
  const rows: { hanging: number; deliveries: number; p50: number; p95: number; p99: number; max: number }[] = []
  for (let round = 1; round <= config.ISOLATION_ROUNDS; round += 1) {
    for (const hanging of [0, 5]) {
      const latencies = await measure(hanging, round)
      const [p50, p95, p99, max] = [0.5, 0.95, 0.99, 1].map((part) => quantile(latencies, part))
      rows.push({ hanging, deliveries: latencies.length, p50: p50!, p95: p95!, p99: p99!, max: max! })
    }
  }
  console.log(
    `\nlatency of healthy destinations in ms; ${config.ISOLATION_PER_SECOND} deliveries per second to ${destinations} destinations`,
  )
  console.table(rows)
  const median = (hanging: number, part: 'p95' | 'p99') =>
    quantile(
      rows.filter((row) => row.hanging === hanging).map((row) => row[part]),
      0.5,
    )
  for (const part of ['p95', 'p99'] as const) expect(median(5, part)).toBeLessThanOrEqual(2 * median(0, part))
})
