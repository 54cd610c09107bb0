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
    const renew = (...claims: string[]) => slow.renew(claims.map((claimId) => ({ deliveryId, claimId })))
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

  it('a delivery that its worker returns unsent is due at once, and the return uses up no attempt', async () => {
    const scene = await test.newScene()
    const { deliveryId } = await scene.send()
    const worker = await test.worker()
    const { attemptId, claimId } = await claimOne(worker)
    const result = { deliveryId, attemptId, claimId, outcome: { case: 'released' as const, value: {} } }
    const release = async () => (await worker.record([result]))[0]
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
    const scene = await test.newScene()
    await Promise.all(Array.from({ length: 4 }, () => scene.send()))
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
    expect(await worker.record([...results, unknown])).toEqual([true, false, true, true, false])
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
    const { record } = await test.worker()
    const invalid = { code: ErrorCode.VALIDATION_FAILED }
    const ids = { deliveryId: 'd', attemptId: 'a', claimId: 'c' }
    await expect(record([ids])).rejects.toMatchObject(invalid)
    for (const status of [0, 99, 600]) {
      const outcome = { case: 'response' as const, value: { status } }
      await expect(record([{ ...ids, outcome }])).rejects.toMatchObject(invalid)
    }
    const outcome = { case: 'failure' as const, value: {} }
    await expect(record([{ ...ids, outcome }])).rejects.toMatchObject(invalid)
    const results = Array.from({ length: 1001 }, () => ({ ...ids, outcome: { case: 'released' as const, value: {} } }))
    await expect(record(results)).rejects.toMatchObject(invalid)
    const reported = { ...ids, destination: 'sub_x', outcome: { case: 'response' as const, value: { status: 200 } } }
    for (const attemptNumber of [1001, 2 ** 31, 2 ** 32 - 1]) {
      await expect(record([{ ...reported, attemptNumber }])).rejects.toMatchObject(invalid)
    }
    expect(await record([{ ...reported, attemptNumber: 1000 }])).toEqual([false])
  })
})
