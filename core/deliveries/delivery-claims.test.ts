import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { isLong, itLong } from '../../test/support/is-long.ts'
import { operatorScopes, testDeliveries } from '../test/deliveries.ts'

const test = testDeliveries()
beforeAll(() => test.open({ started: true }))
beforeEach(() => test.clear())

const second = 1000

async function sceneWith(count: number) {
  const scene = await test.newScene()
  await Promise.all(Array.from({ length: count }, () => scene.send()))
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
      await Promise.all(Array.from({ length: 160 }, () => scene.send()))
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
    const claiming = core!.waitingClaims.claim({
      workerId: 'w',
      limit: 10,
      perDestination: 10,
      underWay: new Map(),
      waitMs: 0,
      onlyNew: false,
      signal: gone.signal,
    })
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

  it('invalid claim requests are rejected', async () => {
    const { calls } = await test.worker()
    const good = { workerId: 'w', limit: 1, perDestination: 1 }
    for (const bad of [{ workerId: '' }, { limit: 0 }, { limit: 1001 }, { perDestination: 0 }, { waitMs: 30_001 }]) {
      await expect(calls.claimDeliveries({ ...good, ...bad })).rejects.toThrow('ValidationFailed')
    }
  })
})

describe('waiting claims', () => {
  it.each([
    ['the same core', 0],
    ['another core', 1],
  ])('a waiting claim returns a new delivery at once when it is created on %s', async (_, core) => {
    const scene = await test.newScene()
    const worker = await test.worker(test.cores[core])
    const began = performance.now()
    const waiting = worker.claim({ waitMs: 30_000 })
    await scene.send()
    expect(await waiting).toHaveLength(1)
    expect(performance.now() - began).toBeLessThan(20_000)
  })

  it('a waiting claim returns a delivery when its retry is due', async () => {
    const scene = await test.newScene()
    await scene.send()
    const worker = await test.worker()
    await worker.drain(500)
    test.advance(4.6 * second)
    const began = performance.now()
    expect(await worker.claim({ waitMs: 30_000 })).toHaveLength(1)
    expect(performance.now() - began).toBeLessThan(20_000)
  })

  it("a waiting claim returns a delivery when a dead worker's lease on it expires, without a wake-up", async () => {
    await (await test.newScene()).send()
    const dead = await test.worker(test.cores[0], 'dead')
    expect(await dead.claim()).toHaveLength(1)
    test.advance(4.6 * second)
    const began = performance.now()
    const taken = await (await test.worker(test.cores[1])).claim({ waitMs: 30_000 })
    expect(taken).toHaveLength(1)
    expect(performance.now() - began).toBeLessThan(20_000)
  })

  it('a waiting claim returns no deliveries when its wait time has passed', async () => {
    const began = performance.now()
    expect(await (await test.worker()).claim({ waitMs: 300 })).toEqual([])
    expect(performance.now() - began).toBeGreaterThan(250)
  })

  it('a new delivery is returned to only one of six waiting workers', async () => {
    const scene = await test.newScene()
    const workers = await Promise.all(Array.from({ length: 6 }, () => test.worker()))
    const waiting = workers.map((worker) => worker.claim({ waitMs: 1500 }))
    await new Promise((resolve) => setTimeout(resolve, 60))
    await Promise.all([scene.send(), scene.send()])
    const claimed = (await Promise.all(waiting)).flat()
    expect(new Set(claimed.map(({ deliveryId }) => deliveryId)).size).toBe(2)
    expect(claimed).toHaveLength(2)
  })

  it('a waiting claim fails when its caller aborts, and takes no later delivery', async () => {
    const { calls } = await test.worker()
    const leaving = new AbortController()
    const waiting = calls.claimDeliveries(
      { workerId: 'w', limit: 1, perDestination: 1, waitMs: 20_000 },
      { signal: leaving.signal },
    )
    setTimeout(() => leaving.abort(), 50)
    await expect(waiting).rejects.toThrow()
    // The aborted claim must not take this delivery.
    await (await test.newScene()).send()
    expect(await (await test.worker()).claim({ waitMs: 2000 })).toHaveLength(1)
  })
})
