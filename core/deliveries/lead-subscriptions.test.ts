import { inspect } from 'node:util'
import { ConnectError } from '@connectrpc/connect'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { DisabledReason, SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { until } from '../../test/support/until.ts'
import { testDeliveries } from './test-deliveries.ts'

const test = testDeliveries()
beforeAll(() => test.open())
beforeEach(() => test.clear())

const second = 1000
const hour = 3_600_000

async function issuesOf(call: Promise<unknown>) {
  const error = ConnectError.from(
    await call.then(
      () => 'no error',
      (failure) => failure,
    ),
  )
  return error.findDetails(ErrorInfoSchema)[0]?.issues.map(({ path, rule }) => `${path} ${rule}`)
}

describe('subscriptions', () => {
  it('a subscription is created with the given settings; only its creation returns the secret', async () => {
    const { operator, workspaceId } = await test.newScene()
    const { secret, subscriptionId, subscription } = await operator.createSubscription({
      destinationUrl: 'http://crm.example:8443/in?key=1',
      mappedFields: ['name', 'mail'],
      automatic: true,
    })
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(subscription).toMatchObject({
      subscriptionId,
      workspaceId,
      destinationUrl: 'http://crm.example:8443/in?key=1',
      mappedFields: ['name', 'mail'],
      automatic: true,
      status: SubscriptionStatus.ENABLED,
      secrets: [{ masked: `${secret.slice(0, 10)}••••` }],
      heldDeliveries: 0,
    })
    const got = await operator.getSubscription({ subscriptionId })
    expect(got.subscription).toEqual(subscription)
    expect(got.audit).toMatchObject([{ actor: 'ada', action: 'created' }])
    expect((await operator.listSubscriptions({})).subscriptions[0]).toEqual(subscription)
    const stored = await test.cores[0]!.database.collections.leadSubscriptions.findOne({ _id: subscriptionId })
    expect(inspect([stored, got], { depth: 10 })).not.toContain(secret.slice(12))
  })

  it.each([
    ['a scheme that is not http', 'ftp://crm.example/', 'format'],
    ['user info', 'https://a:b@crm.example/', 'format'],
    ['a fragment', 'https://crm.example/#x', 'format'],
    ['too long an address', `https://crm.example/${'x'.repeat(2048)}`, 'maxLength'],
    ['no URL at all', 'crm', 'format'],
    ['nothing', '', 'format'],
    ['an address that is not allowed', 'https://db.internal.example/', 'publicAddress'],
  ])('a subscription rejects %s as a destination, in create and update', async (_, destinationUrl, rule) => {
    const { operator, subscriptionId } = await test.newScene()
    const issues = [`/destinationUrl ${rule}`]
    expect(await issuesOf(operator.createSubscription({ destinationUrl }))).toEqual(issues)
    expect(await issuesOf(operator.updateSubscription({ subscriptionId, destinationUrl }))).toEqual(issues)
  })

  it.each<[string, string[], string]>([
    ['the reserved name of the reference', ['reference'], '/mappedFields/0 pattern'],
    ['a name with a space', ['a', 'b c'], '/mappedFields/1 pattern'],
    ['a duplicate name', ['a', 'a'], '/mappedFields/1 uniqueItems'],
    ['too many names', Array.from({ length: 51 }, (_, index) => `f${index}`), '/mappedFields maxItems'],
  ])('a subscription rejects a mapping with %s', async (_, mappedFields, issue) => {
    const { operator } = await test.newScene()
    expect(
      await issuesOf(operator.createSubscription({ destinationUrl: 'https://crm.example/', mappedFields })),
    ).toContain(issue)
  })

  it('a subscription records who made each change', async () => {
    const { operator, subscriptionId, send } = await test.newScene()
    const steps = [
      () => operator.updateSubscription({ subscriptionId, automatic: true }),
      () => send(),
      () => operator.rotateSubscriptionSecret({ subscriptionId }),
      () => operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED }),
      () => operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED }),
      () => operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.ENABLED }),
    ]
    for (const step of steps) {
      test.advance(second)
      await step()
    }
    test.advance(60 * second)
    await (await test.worker()).drain(400)
    const [attempt] = (await operator.listDeliveries({})).deliveries
    const { attemptId } = attempt!.latestAttempt!
    await operator.retryDeliveryAttempt({ attemptId, idempotencyKey: 'r' })
    const { audit } = await operator.getSubscription({ subscriptionId })
    expect(audit.map(({ actor, action }) => `${actor} ${action}`)).toEqual([
      'ada attempt_retried',
      'ada enabled',
      'ada disabled',
      'ada secret_rotated',
      'ada attempt_created',
      'ada updated',
      'ada created',
    ])
    expect(audit[4]!.attemptId).toBe(attemptId)
    expect(audit[2]!.disabledReason).toBe(DisabledReason.OPERATOR)
  })
})

describe('the rotation of a secret', () => {
  it('the rotation of a secret lets both the new and the old secret sign each request until the overlap ends', async () => {
    const { operator, subscriptionId, send, secret: old } = await test.newScene()
    const { secret, subscription } = await operator.rotateSubscriptionSecret({ subscriptionId, overlapSeconds: 3600 })
    expect(secret).not.toBe(old)
    expect(subscription!.secrets).toMatchObject([{ masked: `${secret.slice(0, 10)}••••` }, {}])
    expect(subscription!.secrets[1]!.expiresAt).toBeDefined()
    await send()
    const worker = await test.worker()
    const signatures = async () => {
      const [claimed] = await worker.claim()
      await worker.answer(claimed!, 503)
      test.advance(hour)
      return claimed!.headers['webhook-signature']!.split(' ')
    }
    const [during, after] = [await signatures(), await signatures()]
    expect(during).toHaveLength(2)
    expect(after).toHaveLength(1)
  })

  it('five concurrent rotations leave exactly one secret without an expiry', async () => {
    const { operator, subscriptionId } = await test.newScene()
    await Promise.all(Array.from({ length: 5 }, () => operator.rotateSubscriptionSecret({ subscriptionId })))
    const { subscription } = await operator.rotateSubscriptionSecret({ subscriptionId, overlapSeconds: 0 })
    expect(subscription!.secrets.filter(({ expiresAt }) => expiresAt === undefined)).toHaveLength(1)
    expect(subscription!.secrets).toHaveLength(6)
    expect(await issuesOf(operator.rotateSubscriptionSecret({ subscriptionId, overlapSeconds: 604_801 }))).toEqual([
      '/overlapSeconds maximum',
    ])
  })
})

describe('answers that reject a delivery', () => {
  it.each([
    [401, DisabledReason.REJECTED_AUTH],
    [403, DisabledReason.REJECTED_AUTH],
    [410, DisabledReason.GONE],
  ])('an answer with status %i disables the subscription and holds its other deliveries', async (status, reason) => {
    const { send, subscription, operator, subscriptionId, attempts } = await test.newScene()
    const worker = await test.worker()
    const [one, two] = [await send(), await send()]
    const [first] = await worker.claim({ limit: 1 })
    await worker.answer(first!, status)
    expect(await subscription()).toMatchObject({
      status: SubscriptionStatus.DISABLED,
      disabledReason: reason,
      heldDeliveries: 1,
    })
    const other = first!.deliveryId === one.deliveryId ? two : one
    expect(await attempts(first!.deliveryId)).toMatchObject([{ status: DeliveryStatus.FAILED, responseStatus: status }])
    expect(await attempts(other.deliveryId)).toMatchObject([{ status: DeliveryStatus.HELD }])
    const { audit } = await operator.getSubscription({ subscriptionId })
    expect(audit[0]).toMatchObject({
      actor: 'service',
      action: 'disabled',
      disabledReason: reason,
      attemptId: first!.attemptId,
    })

    expect(await worker.claim()).toEqual([])
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.ENABLED })
    expect(await subscription()).toMatchObject({ status: SubscriptionStatus.ENABLED, heldDeliveries: 0 })
    test.advance(second)
    expect(await worker.drain(200)).toBe(1)
    expect(await attempts(other.deliveryId)).toMatchObject([{ status: DeliveryStatus.ACCEPTED }])
  })

  it('five consecutive 404 answers disable the subscription, and any other answer resets the count', async () => {
    const { send, subscription, operator, subscriptionId } = await test.newScene()
    const worker = await test.worker()
    const answer = async (status: number) => {
      await send()
      const [claimed] = await worker.claim()
      await worker.answer(claimed!, status)
      // A repeated 404 result must increase the count only once.
      await worker.answer(claimed!, status)
    }
    for (let turn = 0; turn < 4; turn += 1) await answer(404)
    await answer(400)
    for (let turn = 0; turn < 4; turn += 1) await answer(404)
    expect((await subscription()).status).toBe(SubscriptionStatus.ENABLED)
    await answer(404)
    expect(await subscription()).toMatchObject({
      status: SubscriptionStatus.DISABLED,
      disabledReason: DisabledReason.GONE,
    })
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.ENABLED })
    await answer(404)
    expect((await subscription()).status).toBe(SubscriptionStatus.ENABLED)
  })

  it('a rejected request does not disable the subscription if the attempt began before the subscription last changed', async () => {
    const { send, subscription, operator, subscriptionId } = await test.newScene()
    await send()
    const worker = await test.worker()
    const [claimed] = await worker.claim()
    test.advance(second)
    await operator.rotateSubscriptionSecret({ subscriptionId })
    await worker.answer(claimed!, 401)
    expect((await subscription()).status).toBe(SubscriptionStatus.ENABLED)
  })
})

const disable = { status: SubscriptionStatus.DISABLED }
const enable = { status: SubscriptionStatus.ENABLED }

describe('disabled subscriptions', () => {
  it('a disabled subscription holds pending and scheduled deliveries; their status is restored when it is enabled', async () => {
    const { send, operator, subscriptionId, attempts } = await test.newScene()
    const worker = await test.worker()
    const scheduled = await send()
    await worker.drain(500)
    const pending = await send()
    await operator.updateSubscription({ subscriptionId, ...disable })
    for (const { deliveryId } of [scheduled, pending]) {
      expect(await attempts(deliveryId)).toMatchObject([{ status: DeliveryStatus.HELD }])
    }
    test.advance(hour)
    expect(await worker.claim()).toEqual([])
    await operator.updateSubscription({ subscriptionId, ...enable })
    expect(await attempts(scheduled.deliveryId)).toMatchObject([{ status: DeliveryStatus.RETRY_SCHEDULED }])
    expect(await attempts(pending.deliveryId)).toMatchObject([{ status: DeliveryStatus.PENDING }])
    test.advance(second)
    expect(await worker.drain(200)).toBe(2)
    expect(await attempts(scheduled.deliveryId)).toHaveLength(2)
    expect(await attempts(pending.deliveryId)).toHaveLength(1)
  })

  it('a disabled subscription rejects a manual retry', async () => {
    const { send, operator, subscriptionId } = await test.newScene()
    const { attemptId } = await send()
    await (await test.worker()).drain(400)
    await operator.updateSubscription({ subscriptionId, ...disable })
    await expect(operator.retryDeliveryAttempt({ attemptId, idempotencyKey: 'k' })).rejects.toThrow(
      'SubscriptionDisabled',
    )
  })

  it('for a disabled subscription, results of claimed deliveries are recorded, and deliveries that need a retry are held', async () => {
    const { send, operator, subscriptionId, attempts } = await test.newScene()
    const [a, b, c] = [await send(), await send(), await send()]
    const worker = await test.worker()
    const claimed = new Map((await worker.claim()).map((delivery) => [delivery.deliveryId, delivery]))
    await operator.updateSubscription({ subscriptionId, ...disable })
    expect(await worker.answer(claimed.get(a.deliveryId)!, 200)).toBe(true)
    expect(await worker.answer(claimed.get(b.deliveryId)!, 500)).toBe(true)
    test.advance(60 * second)
    // Delivery c has no result, as if its worker had died. The next claim sets b and c to held.
    expect(await worker.claim()).toEqual([])
    expect(await attempts(a.deliveryId)).toMatchObject([{ status: DeliveryStatus.ACCEPTED }])
    expect(await attempts(b.deliveryId)).toMatchObject([{ status: DeliveryStatus.HELD }])
    expect(await attempts(c.deliveryId)).toMatchObject([{ status: DeliveryStatus.HELD }])
    expect(await worker.answer(claimed.get(c.deliveryId)!, 200)).toBe(false)
    await operator.updateSubscription({ subscriptionId, ...enable })
    test.advance(second)
    expect(await worker.drain()).toBe(2)
    expect(await attempts(c.deliveryId)).toMatchObject([{ status: DeliveryStatus.ACCEPTED, attemptNumber: 1 }])
  })

  it('enabling a subscription spreads the due times of its 60 held deliveries', async () => {
    const { send, operator, subscriptionId } = await test.newScene()
    await Promise.all(Array.from({ length: 60 }, () => send()))
    await operator.updateSubscription({ subscriptionId, ...disable })
    await operator.updateSubscription({ subscriptionId, ...enable })
    const found = await test.cores[0]!.database.collections.deliveries.find({ subscriptionId }).toArray()
    const times = found.map(({ dueAt }) => dueAt?.getTime() ?? 0)
    expect(times).toHaveLength(60)
    expect(new Set(times).size).toBeGreaterThan(20)
    expect(Math.max(...times) - Math.min(...times)).toBeLessThanOrEqual(600)
  })
})

describe('a disabled subscription with many waiting deliveries', () => {
  it('holds and releases them in steps, answers at once, and follows the last of several changes', async () => {
    const { send, operator, subscriptionId, subscription } = await test.newScene()
    const { deliveries } = test.cores[0]!.database.collections
    const { deliveryId } = await send()
    const { _id, ...one } = (await deliveries.findOne({ _id: deliveryId }))!
    const dueAt = new Date(test.now())
    await deliveries.insertMany(
      Array.from({ length: 1499 }, (_, index) => ({
        ...one,
        _id: `${_id}${index}`,
        operations: [{ key: `${_id} ${index}`, inputHash: '', attemptId: `att_${_id}${index}` }],
        dueAt,
      })),
    )
    await operator.updateSubscription({ subscriptionId, ...disable })
    expect(await deliveries.countDocuments({ subscriptionId, status: 'pending' })).toBeGreaterThan(500)
    expect(await (await test.worker()).claim()).toEqual([])
    await until('all to be held', async () => (await subscription()).heldDeliveries === 1500)
    await operator.updateSubscription({ subscriptionId, ...enable })
    await operator.updateSubscription({ subscriptionId, ...disable })
    await operator.updateSubscription({ subscriptionId, ...enable })
    await until('all to be released', async () => (await subscription()).heldDeliveries === 0)
    expect(await deliveries.countDocuments({ subscriptionId, status: 'pending' })).toBe(1500)
    await test.clear()
  })

  it('has its deliveries held by another core if the first core dies while it holds them', async () => {
    const { send, operator, subscriptionId, subscription, workspaceId } = await test.newScene()
    await Promise.all(Array.from({ length: 450 }, () => send()))
    const dying = await test.client(test.mortalCore(2), ['subscriptions:write'], workspaceId)
    await dying.updateSubscription({ subscriptionId, ...disable }).catch(() => {})
    await test.cores[1]!.deliveryHolds.reconcile()
    await until('all to be held', async () => (await subscription()).heldDeliveries === 450)
    await operator.updateSubscription({ subscriptionId, ...enable })
    await until('all to be released', async () => (await subscription()).heldDeliveries === 0)
  })
})

describe('the death of a core', () => {
  const worker = () => test.worker()

  it('a core that dies while it records a 401 result loses neither the result nor the disabling of the subscription', async () => {
    for (let writes = 0; ; writes += 1) {
      const { send, subscription, attempts } = await test.newScene()
      await send()
      await send()
      const [claimed] = await (await worker()).claim({ limit: 1 })
      const mortal = test.mortalCore(writes)
      const dying = await test.worker(mortal)
      const died = await dying.answer(claimed!, 401).then(
        () => false,
        () => true,
      )
      // The worker repeats the result on another core. Reconciliation disables the subscription.
      if (died) expect(await (await worker()).answer(claimed!, 401)).toBe(true)
      await test.cores[1]!.subscriptionDisabling.applyPending()
      await test.cores[1]!.deliveryHolds.reconcile()
      expect(await subscription()).toMatchObject({ status: SubscriptionStatus.DISABLED, heldDeliveries: 1 })
      expect(await attempts(claimed!.deliveryId)).toMatchObject([{ status: DeliveryStatus.FAILED }])
      const left = await test.cores[0]!.database.collections.deliveries.countDocuments({ verdict: { $exists: true } })
      expect(left).toBe(0)
      await test.clear()
      if (writes > 6) return
    }
  })

  it('a core that dies while it enables or disables a subscription leaves deliveries in a state that reconciliation repairs', async () => {
    for (const status of [SubscriptionStatus.DISABLED, SubscriptionStatus.ENABLED]) {
      for (let writes = 0; writes < 3; writes += 1) {
        const { send, operator, subscriptionId, subscription, workspaceId } = await test.newScene()
        await send()
        if (status === SubscriptionStatus.ENABLED)
          await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
        const dying = await test.client(test.mortalCore(writes), ['subscriptions:write'], workspaceId)
        await dying.updateSubscription({ subscriptionId, status }).catch(() => {})
        await test.cores[1]!.deliveryHolds.reconcile()
        const now = await subscription()
        expect(now.heldDeliveries).toBe(now.status === SubscriptionStatus.DISABLED ? 1 : 0)
        if (writes > 0) expect(now.status).toBe(status)
        await test.clear()
      }
    }
  })
})
