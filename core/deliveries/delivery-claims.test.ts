import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { operatorScopes, testDeliveries } from './test-deliveries.ts'

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
  it('each delivery is returned to only one of several workers that claim concurrently on two cores', async () => {
    const scenes = await Promise.all(Array.from({ length: 10 }, () => test.newScene()))
    const operators = await Promise.all(
      scenes.map(({ workspaceId }, index) => test.client(test.cores[index % 2]!, operatorScopes, workspaceId)),
    )
    const workers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => test.worker(test.cores[index % 2], `worker-${index}`)),
    )
    const total = 20 * 50
    const shares = workers.map(() => [] as string[])
    const produced = Promise.all(
      Array.from({ length: 20 }, async (_, producer) => {
        const { leadId, subscriptionId } = scenes[producer % 10]!
        for (let index = 0; index < 50; index += 1) {
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
    for (const share of shares) expect(share.length).toBeGreaterThan(0)
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

  it('a claim leaves deliveries in the queue if they would make the response too large; the next claim returns them', async () => {
    const fields = Object.fromEntries(Array.from({ length: 15 }, (_, index) => [`f${index}`, 'x'.repeat(4_000)]))
    const scene = await test.newScene({ mappedFields: Object.keys(fields), fields })
    await Promise.all(Array.from({ length: 160 }, () => scene.send()))
    const worker = await test.worker()
    const first = await worker.claim({ limit: 200, perDestination: 200 })
    const bytes = first.reduce((sum, { body }) => sum + body.length, 0)
    expect(bytes).toBeLessThanOrEqual(8 * 1024 * 1024)
    expect(first.length).toBeGreaterThan(100)
    const second = await worker.claim({ limit: 200, perDestination: 200 })
    expect(new Set([...first, ...second].map(({ deliveryId }) => deliveryId)).size).toBe(160)
    expect(first.length + second.length).toBe(160)
  })

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
    const claiming = core!.deliveryClaims.claim({
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

describe('leases', () => {
  const claimOne = async (worker: Awaited<ReturnType<typeof test.worker>>): Promise<ClaimedDelivery> => {
    const [claimed] = await worker.claim()
    if (!claimed) throw new Error('nothing to claim')
    return claimed
  }

  it('after a lease expires, another worker can take over the same attempt', async () => {
    const scene = await test.newScene()
    const { deliveryId, attemptId } = await scene.send()
    const dead = await test.worker(test.cores[0], 'dead')
    const alive = await test.worker(test.cores[1], 'alive')
    const first = await claimOne(dead)
    test.advance(4 * second)
    expect(await alive.claim()).toEqual([])
    test.advance(2 * second)
    const taken = await claimOne(alive)
    expect(taken).toMatchObject({ deliveryId, attemptId })
    expect(taken.claimId).not.toBe(first.claimId)

    // The dead worker's late result names its old claim, so it changes nothing.
    expect(await dead.answer(first, 410)).toBe(false)
    expect(await scene.attempts(deliveryId)).toMatchObject([{ attemptNumber: 1, status: DeliveryStatus.SENDING }])
    expect(await scene.subscription()).toMatchObject({ disabledReason: 0 })
    expect(await alive.answer(taken, 200)).toBe(true)
    expect(await dead.answer(first, 500)).toBe(false)
    expect(await scene.attempts(deliveryId)).toMatchObject([{ attemptNumber: 1, status: DeliveryStatus.ACCEPTED }])
  })

  it('after a lease expires, its worker can still record a result if no other worker took over', async () => {
    const scene = await test.newScene()
    await scene.send()
    const worker = await test.worker()
    const claimed = await claimOne(worker)
    test.advance(60 * second)
    expect(await worker.answer(claimed, 200)).toBe(true)
    expect(await worker.claim()).toEqual([])
  })

  it('a lease that expires because its worker died uses up no attempt', async () => {
    const scene = await test.newScene()
    const { deliveryId } = await scene.send()
    const worker = await test.worker()
    for (let death = 0; death < 12; death += 1) {
      await claimOne(worker)
      test.advance(21 * second)
    }
    await worker.answer(await claimOne(worker), 500)
    expect(await scene.attempts(deliveryId)).toMatchObject([{ status: DeliveryStatus.RETRY_SCHEDULED }])
  })

  it('a lease lasts while it is renewed, and is lost if it expires and another worker takes over', async () => {
    const scene = await test.newScene()
    const { deliveryId } = await scene.send()
    const [slow, other] = [await test.worker(test.cores[0], 'slow'), await test.worker(test.cores[1], 'other')]
    const { claimId } = await claimOne(slow)
    const renew = async (...claims: string[]) =>
      (await slow.calls.renewClaims({ claims: claims.map((claimId) => ({ deliveryId, claimId })) })).renewed.map(
        ({ held }) => held,
      )
    for (let turn = 0; turn < 4; turn += 1) {
      test.advance(4 * second)
      expect(await renew(claimId)).toEqual([true])
      expect(await other.claim()).toEqual([])
    }
    test.advance(6 * second)
    const taken = await claimOne(other)
    expect(taken.deliveryId).toBe(deliveryId)
    expect(await renew(claimId, 'clm_forged', taken.claimId)).toEqual([false, false, true])
    expect(await renew(claimId, 'clm_forged')).toEqual([false, false])
    expect(await slow.answer({ ...taken, claimId }, 500)).toBe(false)
    expect(await other.answer(taken, 200)).toBe(true)
    // An ended delivery has no claim that could be renewed.
    expect(await renew(taken.claimId)).toEqual([false])
    expect(await scene.attempts(deliveryId)).toMatchObject([{ attemptNumber: 1, status: DeliveryStatus.ACCEPTED }])
  })

  it('an expired lease is renewed if no other worker took over', async () => {
    const scene = await test.newScene()
    const { deliveryId } = await scene.send()
    const worker = await test.worker()
    const { claimId } = await claimOne(worker)
    test.advance(8 * second)
    expect((await worker.calls.renewClaims({ claims: [{ deliveryId, claimId }] })).renewed).toMatchObject([
      { held: true },
    ])
    expect(await worker.claim()).toEqual([])
  })

  it('a lease has a maximum age, after which renewals fail', async () => {
    const scene = await test.newScene()
    const { deliveryId } = await scene.send()
    const stuck = await test.worker()
    const { claimId } = await claimOne(stuck)
    let held = true
    let renewals = 0
    for (; held; renewals += 1) {
      test.advance(4 * second)
      const { renewed } = await stuck.calls.renewClaims({ claims: [{ deliveryId, claimId }] })
      held = renewed[0]!.held
    }
    // The maximum age is 30 s: twice the attempt deadline of 10 s plus twice the lease of 5 s.
    expect(renewals).toBe(8)
    test.advance(5 * second)
    expect(await (await test.worker(test.cores[1])).claim()).toHaveLength(1)
  })

  it('at most a thousand leases can be renewed in one call', async () => {
    const claims = Array.from({ length: 1001 }, () => ({ deliveryId: 'd', claimId: 'c' }))
    const { calls } = await test.worker()
    await expect(calls.renewClaims({ claims })).rejects.toThrow('ValidationFailed')
    expect((await calls.renewClaims({ claims: claims.slice(1) })).renewed).toHaveLength(1000)
    expect((await calls.renewClaims({ claims: [] })).renewed).toEqual([])
  })

  it('a delivery that its worker gives up is due at once, and this uses up no attempt', async () => {
    const scene = await test.newScene()
    const { deliveryId } = await scene.send()
    const worker = await test.worker()
    const { attemptId, claimId } = await claimOne(worker)
    const result = { deliveryId, attemptId, claimId, outcome: { case: 'released' as const, value: {} } }
    const release = async () => (await worker.calls.recordAttempts({ results: [result] })).recorded[0]?.counted
    expect(await release()).toBe(true)
    expect(await release()).toBe(true)
    expect(await scene.attempts(deliveryId)).toMatchObject([{ status: DeliveryStatus.PENDING }])
    const again = await claimOne(worker)
    expect(again.attemptId).toBe(attemptId)
    expect(await worker.answer({ ...again, claimId }, 200)).toBe(false)
    expect(await release()).toBe(false)
  })
})

describe('the recording of results', () => {
  it('a repeated result is reported as recorded and changes nothing', async () => {
    const scene = await test.newScene()
    const { deliveryId } = await scene.send()
    const worker = await test.worker()
    const [claimed] = await worker.claim()
    expect(await worker.answer(claimed!, 500)).toBe(true)
    const [before] = await scene.attempts(deliveryId)
    expect(await worker.answer(claimed!, 200)).toBe(true)
    expect((await scene.attempts(deliveryId))[0]).toEqual(before)
    test.advance(6 * second)
    const [next] = await worker.claim()
    // The worker repeats the result of its earlier claim.
    expect(await worker.answer(claimed!, 500)).toBe(true)
    expect(await worker.answer({ ...next!, claimId: claimed!.claimId }, 500)).toBe(false)
    expect(await scene.attempts(deliveryId)).toMatchObject([{}, { status: DeliveryStatus.SENDING }])
  })

  it('results of deliveries that the worker still holds are recorded, even if the same batch has results with unknown claims', async () => {
    const scene = await sceneWith(4)
    const worker = await test.worker()
    const claimed = await worker.claim()
    const response = (status: number) => ({ case: 'response' as const, value: { status } })
    const results = claimed.map(({ deliveryId, attemptId, claimId }, index) => ({
      deliveryId,
      attemptId,
      claimId: index === 1 ? 'clm_forged' : claimId,
      outcome: response([200, 200, 500, 400][index]!),
    }))
    const unknown = { deliveryId: 'dlv_none', attemptId: 'att_none', claimId: 'clm_none', outcome: response(200) }
    const { recorded } = await worker.calls.recordAttempts({ results: [...results, unknown] })
    expect(recorded.map(({ counted }) => counted)).toEqual([true, false, true, true, false])
    const { deliveries } = await scene.operator.listDeliveries({})
    const statusOf = new Map(deliveries.map(({ deliveryId, status }) => [deliveryId, status]))
    expect(claimed.map(({ deliveryId }) => statusOf.get(deliveryId))).toEqual([
      DeliveryStatus.ACCEPTED,
      DeliveryStatus.SENDING,
      DeliveryStatus.RETRY_SCHEDULED,
      DeliveryStatus.FAILED,
    ])
  })

  it('invalid results are rejected', async () => {
    const { calls } = await test.worker()
    const ids = { deliveryId: 'd', attemptId: 'a', claimId: 'c' }
    await expect(calls.recordAttempts({ results: [ids] })).rejects.toThrow('ValidationFailed')
    for (const status of [0, 99, 600]) {
      const outcome = { case: 'response' as const, value: { status } }
      await expect(calls.recordAttempts({ results: [{ ...ids, outcome }] })).rejects.toThrow('ValidationFailed')
    }
    const outcome = { case: 'failure' as const, value: {} }
    await expect(calls.recordAttempts({ results: [{ ...ids, outcome }] })).rejects.toThrow('ValidationFailed')
    const results = Array.from({ length: 1001 }, () => ({ ...ids, outcome: { case: 'released' as const, value: {} } }))
    await expect(calls.recordAttempts({ results })).rejects.toThrow('ValidationFailed')
    const reported = { ...ids, destination: 'sub_x', outcome: { case: 'response' as const, value: { status: 200 } } }
    for (const attemptNumber of [1001, 2 ** 31, 2 ** 32 - 1]) {
      await expect(calls.recordAttempts({ results: [{ ...reported, attemptNumber }] })).rejects.toThrow(
        'ValidationFailed',
      )
    }
    const last = await calls.recordAttempts({ results: [{ ...reported, attemptNumber: 1000 }] })
    expect(last.recorded).toMatchObject([{ counted: false }])
  })
})
