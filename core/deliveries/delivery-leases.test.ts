import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { testDeliveries } from '../test/deliveries.ts'

const test = testDeliveries()
beforeAll(() => test.open())
beforeEach(() => test.clear())

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
    await expect(renew(claims)).rejects.toMatchObject({ code: ErrorCode.VALIDATION_FAILED })
    expect(await renew(claims.slice(1))).toHaveLength(1000)
    expect(await renew([])).toEqual([])
  })
})

describe('the recording of results', () => {
  it('invalid results are rejected', async () => {
    const { record } = await test.worker()
    const invalid = { code: ErrorCode.VALIDATION_FAILED }
    const ids = { deliveryId: 'd', attemptId: 'a', claimId: 'c' }
    await expect(record([ids])).rejects.toMatchObject(invalid)
    const outcome = { case: 'failure' as const, value: {} }
    await expect(record([{ ...ids, outcome }])).rejects.toMatchObject(invalid)
  })
})
