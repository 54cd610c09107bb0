import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import type { DeliveryDocument, DeliveryStatus as Status } from '../deliveries/model.ts'
import { newId } from '../ids.ts'
import { hasFailed } from '../test/cores.ts'
import { testDeliveries } from '../test/deliveries.ts'
import { proceedRecoveries, recoveryLeasesOf, stepRecovery } from './recovery.ts'

const test = testDeliveries()

const minute = 60_000
const deliveriesOf = () => test.cores[0]!.database.collections.deliveries

/**
 * Creates a subscription with one delivery for each given status. The deliveries were created one
 * minute apart, the last one a minute ago.
 */
async function outage(statuses: Status[]) {
  const scene = await test.newScene()
  const { workspaceId, subscriptionId, leadId, operator } = scene
  const start = test.now() - statuses.length * minute
  const at = (index: number) => new Date(start + index * minute)
  const documents = statuses.map((status, index): DeliveryDocument => {
    const [createdAt, attemptId] = [at(index), newId('att')]
    const ended =
      status === 'held' ? {} : { outcome: { status: 'failed' as const, responseClass: 'server_error' as const } }
    const attempt = { attemptId, correlationId: 'c', manual: false, createdAt, updatedAt: createdAt, ...ended }
    return {
      _id: `dlv_${leadId}_${String(index).padStart(5, '0')}`,
      workspaceId,
      eventType: 'lead.ready-for-delivery',
      leadId,
      subscriptionId,
      destination: subscriptionId,
      status,
      attempts: [attempt],
      operations: [{ key: attemptId, inputHash: '', attemptId }],
      createdAt,
      updatedAt: createdAt,
      body: Buffer.from(`{"n":${index}}`),
      ...(status === 'held' ? { heldDueAt: createdAt } : { deleteAt: new Date(start + 1e10) }),
    }
  })
  await deliveriesOf().insertMany(documents)
  const recover = (more: object = {}) =>
    operator.recoverDeliveries({ subscriptionId, since: timestampFromDate(at(0)), ...more })
  const proceed = () => proceedRecoveries(test.cores[0]!)
  /** Runs steps of the recovery until it has ended. Advances the clock between the steps. */
  const finish = async () => {
    for (let turn = 0; turn < 200; turn += 1) {
      for (const core of test.cores) await proceedRecoveries(core)
      if ((await scene.subscription()).recovery!.finishedAt) return
      test.advance(10_000)
    }
    throw new Error('the recovery did not end')
  }
  const ids = documents.map(({ _id }) => _id)
  return { ...scene, at, ids, recover, proceed, finish }
}

describe('RecoverDeliveries', () => {
  it('schedules failed, dead-lettered and held deliveries again, with the same ids and bodies', async () => {
    const { recover, finish, ids, subscription, operator, subscriptionId } = await outage([
      'failed',
      'accepted',
      'dead_lettered',
      'held',
    ])
    expect((await recover({ preview: true })).count).toBe(3)
    expect((await recover()).recovery).toMatchObject({ recovered: 0 })
    await finish()
    test.advance(minute)
    const worker = await test.worker()
    const claimed = await worker.claim()
    expect(claimed.map(({ deliveryId }) => deliveryId).sort()).toEqual([ids[0], ids[2], ids[3]])
    for (const { deliveryId, body, attemptNumber } of claimed) {
      const index = ids.indexOf(deliveryId)
      expect(Buffer.from(body).toString()).toBe(`{"n":${index}}`)
      expect(attemptNumber).toBe(index === 3 ? 1 : 2)
    }
    await worker.answerAll(claimed, 200)
    expect((await subscription()).recovery).toMatchObject({ recovered: 3 })
    const { audit } = await operator.getSubscription({ subscriptionId })
    expect(audit[0]).toMatchObject({ actor: 'ada', action: 'recovery_started' })
    expect((await recover({ preview: true })).count).toBe(0)
  })

  it('schedules only deliveries of the period, with the given statuses', async () => {
    const { recover, finish, at, ids } = await outage(['failed', 'failed', 'dead_lettered', 'failed'])
    const range = {
      since: timestampFromDate(at(1)),
      until: timestampFromDate(at(3)),
      statuses: [DeliveryStatus.FAILED],
    }
    expect((await recover({ ...range, preview: true })).count).toBe(1)
    await recover(range)
    await finish()
    expect(await deliveriesOf().distinct('_id', { status: 'pending' })).toEqual([ids[1]])
  })

  it('rejects an empty or missing period, other statuses, a disabled subscription and one of another workspace', async () => {
    const { recover, at, subscriptionId, operator } = await outage(['failed'])
    const { operator: stranger } = await test.newScene()
    for (const preview of [true, false]) {
      await expect(recover({ until: timestampFromDate(at(0)), preview })).rejects.toThrow('ValidationFailed')
      await expect(recover({ since: timestampFromDate(at(9)), preview })).rejects.toThrow('ValidationFailed')
      await expect(recover({ since: undefined, preview })).rejects.toThrow('ValidationFailed')
      await expect(recover({ statuses: [DeliveryStatus.ACCEPTED], preview })).rejects.toThrow('ValidationFailed')
      const foreign = { subscriptionId, since: timestampFromDate(at(0)), preview }
      await expect(stranger.recoverDeliveries(foreign)).rejects.toThrow('SubscriptionNotFound')
    }
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    await expect(recover()).rejects.toThrow('SubscriptionDisabled')
  })

  it('accepts one recovery per subscription at a time, which waits while the subscription is disabled', async () => {
    const { recover, finish, proceed, operator, subscriptionId, subscription } = await outage(['failed'])
    const started = await Promise.allSettled([recover(), recover()])
    expect(started.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    await expect(recover()).rejects.toThrow('OperationInProgress')
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    await proceed()
    const { recovered, finishedAt } = (await subscription()).recovery!
    expect([recovered, finishedAt]).toEqual([0, undefined])
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.ENABLED })
    await finish()
    expect((await subscription()).recovery!.recovered).toBe(1)
    await recover()
  })

  it('skips deliveries without a body, and deliveries that have had the maximum number of attempts', async () => {
    const { recover, finish, ids, subscription } = await outage(['failed', 'failed', 'failed'])
    await deliveriesOf().updateOne({ _id: ids[0]! }, { $unset: { body: '' } })
    const [one] = (await deliveriesOf().findOne({ _id: ids[1]! }))!.attempts
    const attempts = Array.from({ length: 50 }, (_, index) => ({ ...one!, attemptId: `${one!.attemptId}${index}` }))
    await deliveriesOf().updateOne({ _id: ids[1]! }, { $set: { attempts } })
    await recover()
    await finish()
    expect(await deliveriesOf().distinct('_id', { status: 'pending' })).toEqual([ids[2]])
    expect((await subscription()).recovery!.recovered).toBe(1)
  })

  itLong('schedules at most 100 deliveries per second, in steps that reach about ten seconds ahead', async () => {
    const total = 1500
    const { recover, proceed, finish, subscription, ids } = await outage(Array.from({ length: total }, () => 'failed'))
    await recover()
    const began = test.now()
    await proceed()
    const { recovered } = (await subscription()).recovery!
    expect(recovered).toBeGreaterThanOrEqual(1000)
    // A recovery schedules 100 deliveries per second, at most ten seconds ahead. One more step of
    // 200 deliveries may pass this limit. The last term counts the time that the test itself took.
    expect(recovered).toBeLessThanOrEqual(1200 + (test.now() - began) / 10)
    await finish()
    const found = await deliveriesOf()
      .find({ _id: { $in: ids } })
      .sort({ dueAt: 1 })
      .toArray()
    const times = found.map(({ dueAt }) => dueAt!.getTime())
    for (let index = 100; index < times.length; index += 1) {
      expect(times[index]! - times[index - 100]!).toBeGreaterThanOrEqual(1000)
    }
    expect((await subscription()).recovery!.recovered).toBe(total)
  })

  itLong('schedules each delivery once if cores die between any two writes', async () => {
    const { recover, finish, ids, subscription } = await outage(Array.from({ length: 450 }, () => 'dead_lettered'))
    await recover()
    for (let writes = 0; ; writes += 1) {
      const died = await hasFailed(proceedRecoveries(test.mortalCore(writes)))
      // The lease of the dead core expires.
      test.advance(31_000)
      if (!died) break
    }
    await finish()
    const found = await deliveriesOf()
      .find({ _id: { $in: ids } })
      .toArray()
    expect(found.every(({ status, attempts }) => status === 'pending' && attempts.length === 2)).toBe(true)
    expect((await subscription()).recovery!.recovered).toBe(450)
  })

  it('schedules a delivery once even if it fails again during the same recovery', async () => {
    const { recover, proceed, finish, ids, subscriptionId } = await outage(['failed', 'dead_lettered'])
    await recover()
    const subscriptions = test.cores[0]!.database.collections.leadSubscriptions
    const before = (await subscriptions.findOne({ _id: subscriptionId }))!.recovery
    await proceed()
    await (await test.worker()).drain(400)
    // The progress of the step is lost, as after a crash.
    await subscriptions.updateOne({ _id: subscriptionId }, { $set: { recovery: before } })
    await finish()
    const found = await deliveriesOf()
      .find({ _id: { $in: ids } })
      .toArray()
    expect(found.map(({ attempts }) => attempts.length)).toEqual([2, 2])
  })

  itLong('counts each delivery once if two cores continue the recovery at the same time', async () => {
    const { recover, finish, subscription } = await outage(Array.from({ length: 250 }, () => 'failed'))
    await recover()
    const [one, other] = test.cores
    await Promise.all([proceedRecoveries(one!), proceedRecoveries(other!)])
    await finish()
    expect((await subscription()).recovery!.recovered).toBe(250)
  })

  itLong('ignores the progress of a core whose lease has expired, once another core has continued', async () => {
    const { recover, finish, subscription } = await outage(Array.from({ length: 250 }, () => 'failed'))
    await recover()
    const core = test.cores[0]!
    const leases = recoveryLeasesOf(core)
    const late = (await leases.take({ now: new Date(test.now()), until: new Date(test.now() + 30_000) }))!
    test.advance(31_000)
    await finish()
    const { recovery } = await subscription()
    const at = new Date(test.now())
    await expect(stepRecovery(core, late)).rejects.toThrow('taken over')
    const ended = { ...late.document.recovery!, remaining: [] }
    const last = { ...late, document: { ...late.document, recovery: ended } }
    await expect(stepRecovery(core, last)).rejects.toThrow('taken over')
    expect((await subscription()).recovery).toEqual(recovery)
    expect(await leases.take({ now: at, until: at })).toBeUndefined()
  })
})
