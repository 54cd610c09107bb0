import { describe, expect, it } from 'vitest'
import { type ClaimedDelivery, DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { testDeliveries } from '../test/deliveries.ts'

const test = testDeliveries()

const second = 1000

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

  it('an expired lease is renewed if no other worker took over', async () => {
    const scene = await test.newScene()
    const { deliveryId } = await scene.send()
    const worker = await test.worker()
    const { claimId } = await claimOne(worker)
    test.advance(8 * second)
    expect(await worker.renew([{ deliveryId, claimId }])).toEqual([true])
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
      held = (await stuck.renew([{ deliveryId, claimId }]))[0]!
    }
    // The maximum age is 30 s: twice the attempt deadline of 10 s plus twice the lease of 5 s.
    expect(renewals).toBe(8)
    test.advance(5 * second)
    expect(await (await test.worker(test.cores[1])).claim()).toHaveLength(1)
  })

  it('at most a thousand leases can be renewed in one call', async () => {
    const claims = Array.from({ length: 1001 }, () => ({ deliveryId: 'd', claimId: 'c' }))
    const { renew } = await test.worker()
    await expect(renew(claims)).rejects.toMatchObject({ code: 'ValidationFailed' })
    expect(await renew(claims.slice(1))).toHaveLength(1000)
    expect(await renew([])).toEqual([])
  })
})

it('invalid results of deliveries are rejected', async () => {
  const { record } = await test.worker()
  const invalid = { code: 'ValidationFailed' }
  const ids = { deliveryId: 'd', attemptId: 'a', claimId: 'c' }
  await expect(record([ids])).rejects.toMatchObject(invalid)
  const outcome = { case: 'failure' as const, value: {} }
  await expect(record([{ ...ids, outcome }])).rejects.toMatchObject(invalid)
})

const response = (status: number) => ({ case: 'response' as const, value: { status } })

async function claimedOf(count: number) {
  const scene = await test.newScene()
  const worker = await test.worker()
  for (let index = 0; index < count; index += 1) await scene.send()
  return { scene, worker, claimed: await worker.claim() }
}

const result = (
  { deliveryId, attemptId, claimId }: ClaimedDelivery,
  status: number,
  durationMs: number,
  more: { claimId?: string } = {},
) => ({ deliveryId, attemptId, claimId, durationMs, outcome: response(status), ...more })

describe('results recorded in one call', () => {
  it('results recorded in one call change each delivery as separate calls would, and each attempt keeps its own duration', async () => {
    const { scene, worker, claimed } = await claimedOf(20)
    const statuses = [200, 204, 400, 200, 503]
    const recorded = await worker.record(
      claimed.map((delivery, index) => result(delivery, statuses[index % 5]!, 100 + index)),
    )
    expect(recorded.every(Boolean)).toBe(true)
    for (const [index, { deliveryId, attemptId }] of claimed.entries()) {
      const [attempt, ...others] = await scene.attempts(deliveryId)
      const status = statuses[index % 5]!
      expect(others).toEqual([])
      expect(attempt).toMatchObject({
        attemptId,
        responseStatus: status,
        durationMs: 100 + index,
        status:
          status === 503
            ? DeliveryStatus.RETRY_SCHEDULED
            : status === 400
              ? DeliveryStatus.FAILED
              : DeliveryStatus.ACCEPTED,
      })
    }
    const { deliveries } = test.cores[0]!.database.collections
    const kept = await deliveries.find({ body: { $exists: true } }).toArray()
    expect(kept.map(({ status }) => status).sort()).toEqual([
      ...Array(4).fill('failed'),
      ...Array(4).fill('retry_scheduled'),
    ])
    expect(await deliveries.countDocuments({ claim: { $exists: true } })).toBe(0)
    expect(await deliveries.countDocuments({ status: 'accepted', dueAt: { $exists: true } })).toBe(0)
  })

  it('results recorded in one call leave earlier attempts of the deliveries unchanged', async () => {
    const { scene, worker, claimed } = await claimedOf(3)
    await worker.answerAll(claimed, 503)
    test.advance(10_000)
    const again = await worker.claim()
    expect(again).toHaveLength(3)
    await worker.record(again.map((delivery, index) => result(delivery, 200, index)))
    for (const [index, { deliveryId }] of again.entries()) {
      const attempts = await scene.attempts(deliveryId)
      expect(attempts.map(({ responseStatus }) => responseStatus)).toEqual([503, 200])
      expect(attempts[1]?.durationMs).toBe(index)
      expect(attempts[0]?.attemptId).not.toBe(attempts[1]?.attemptId)
    }
  })

  it('results recorded in one call are stored if the worker still holds the delivery, and change nothing if another worker took over', async () => {
    const { scene, worker, claimed } = await claimedOf(6)
    test.advance(60_000)
    const other = await test.worker(test.cores[0], 'other')
    const taken = await other.claim()
    expect(taken).toHaveLength(6)
    const byId = new Map(claimed.map((delivery) => [delivery.deliveryId, delivery]))
    const recorded = await other.record(
      taken.map((delivery, index) =>
        // The first two results name the earlier claim of their delivery. Another worker has taken
        // over the delivery with a new claim.
        result(delivery, 200, 1, index < 2 ? { claimId: byId.get(delivery.deliveryId)!.claimId } : {}),
      ),
    )
    expect(recorded).toEqual([false, false, true, true, true, true])
    expect(await worker.answerAll(claimed, 410)).toBe(0)
    const states = await Promise.all(taken.map(async ({ deliveryId }) => (await scene.attempts(deliveryId))[0]?.status))
    expect(states).toEqual([...Array(2).fill(DeliveryStatus.SENDING), ...Array(4).fill(DeliveryStatus.ACCEPTED)])
  })
})
