import { describe, expect, it } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { isLong, itLong } from '../../test/support/is-long.ts'
import { claimDue } from '../test/claims.ts'
import { operatorScopes, testDeliveries } from '../test/deliveries.ts'

const test = testDeliveries({ started: true })

const second = 1000

async function sceneWith(count: number) {
  const scene = await test.newScene()
  await scene.sendMany(count)
  return scene
}

describe('claims', () => {
  itLong('each delivery is returned to only one of several workers that claim concurrently on two cores', async () => {
    const scenes = await Promise.all(Array.from({ length: 10 }, () => test.newScene()))
    const operators = await Promise.all(
      scenes.map(({ workspaceId }, index) => test.client(test.cores[index % 2]!, operatorScopes, workspaceId)),
    )
    const workers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => test.worker(test.cores[index % 2], `worker-${index}`)),
    )
    const each = isLong ? 50 : 5
    const total = 20 * each
    const shares = workers.map(() => [] as string[])
    const produced = Promise.all(
      Array.from({ length: 20 }, async (_, producer) => {
        const { leadId, subscriptionId } = scenes[producer % 10]!
        for (let index = 0; index < each; index += 1) {
          const idempotencyKey = `p${producer}-${index}`
          await operators[producer % 10]!.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey })
        }
      }),
    )
    const sum = () => shares.reduce((count, { length }) => count + length, 0)
    await Promise.all([
      produced,
      ...workers.map(async (worker, index) => {
        while (sum() < total) {
          const claimed = await worker.claim({ limit: 20, waitMs: 500 })
          shares[index]!.push(...claimed.map(({ deliveryId }) => deliveryId))
          if (claimed.length > 0) expect(await worker.answerAll(claimed, 200)).toBe(claimed.length)
        }
      }),
    ])
    expect(sum()).toBe(total)
    expect(new Set(shares.flat()).size).toBe(total)
    // With few deliveries, a slow worker may come too late for any.
    if (isLong) for (const share of shares) expect(share.length).toBeGreaterThan(0)
  })

  it('a claim takes at most as many deliveries per destination as the worker can still send at once', async () => {
    const scenes = await Promise.all([sceneWith(30), sceneWith(30), sceneWith(3)])
    const [full, half, small] = scenes.map(({ subscriptionId }) => subscriptionId) as [string, string, string]
    const worker = await test.worker()
    const claimed = await worker.claim({ perDestination: 10, underWay: { [full]: 10, [half]: 6 } })
    const counts = Map.groupBy(claimed, ({ destination }) => destination)
    expect(counts.get(full)).toBeUndefined()
    expect(counts.get(half)).toHaveLength(4)
    expect(counts.get(small)).toHaveLength(3)
  })

  itLong(
    'a claim leaves deliveries in the queue if they would make the response too large; the next claim returns them before any other',
    async () => {
      const fields = Object.fromEntries(Array.from({ length: 15 }, (_, index) => [`f${index}`, 'x'.repeat(4_000)]))
      const scene = await test.newScene({ mappedFields: Object.keys(fields), fields })
      await scene.sendMany(160)
      const worker = await test.worker()
      const first = await worker.claim({ limit: 200, perDestination: 200 })
      const bytes = first.reduce((sum, { body }) => sum + body.length, 0)
      expect(bytes).toBeLessThanOrEqual(8 * 1024 * 1024)
      expect(first.length).toBeGreaterThan(100)
      // The leases of the first claim end, so all deliveries are due again.
      test.advance(6 * second)
      const next = await worker.claim({ limit: 200, perDestination: 200 })
      expect(new Set([...first, ...next].map(({ deliveryId }) => deliveryId)).size).toBe(160)
    },
  )

  it('a claim takes deliveries of all destinations although one destination has a long backlog', async () => {
    await sceneWith(100)
    const others = await Promise.all(Array.from({ length: 5 }, () => sceneWith(2)))
    const claimed = await (await test.worker()).claim({ limit: 20 })
    expect(claimed).toHaveLength(20)
    for (const { subscriptionId } of others) {
      expect(claimed.filter(({ destination }) => destination === subscriptionId)).toHaveLength(2)
    }
  })

  it('a claim takes deliveries that are queued behind the long backlog of a destination whose limit is reached', async () => {
    const full = await sceneWith(300)
    const other = await sceneWith(1)
    const worker = await test.worker()
    const more = { perDestination: 5, underWay: { [full.subscriptionId]: 5 } }
    for (let turn = 0; turn < 2; turn += 1) {
      const claimed = await worker.claim(more)
      expect(claimed.map(({ destination }) => destination)).toEqual(turn === 0 ? [other.subscriptionId] : [])
    }
  })

  it('a claim returns its deliveries to the queue if the caller aborts', async () => {
    const { attempts, send } = await test.newScene()
    const { deliveryId } = await send()
    const [core] = test.cores
    const gone = new AbortController()
    const claiming = claimDue(core!, { limit: 10 }, gone.signal)
    // Aborts after the first poll has begun and before it ends.
    await Promise.resolve()
    gone.abort()
    expect(await claiming).toEqual([])
    expect(await attempts(deliveryId)).toMatchObject([{ status: DeliveryStatus.PENDING }])
    expect(await (await test.worker()).claim()).toHaveLength(1)
  })

  it('a claim skips a subscription whose secret cannot be decrypted', async () => {
    const [broken, good] = [await sceneWith(3), await sceneWith(3)]
    await test.cores[0]!.database.collections.leadSubscriptions.updateOne(
      { _id: broken.subscriptionId },
      { $set: { 'secrets.0.sealed': 'k0.AAAA.AAAA' } },
    )
    const worker = await test.worker()
    const claimed = await worker.claim()
    expect(claimed.map(({ destination }) => destination)).toEqual(Array(3).fill(good.subscriptionId))
    expect(await worker.claim()).toEqual([])
    // The skipped deliveries stay pending.
    const { deliveries } = await broken.operator.listDeliveries({ statuses: [DeliveryStatus.PENDING] })
    expect(deliveries).toHaveLength(3)
  })
})
