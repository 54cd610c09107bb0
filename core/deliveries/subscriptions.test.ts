import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { DisabledReason, SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { someOf } from '../../test/support/is-long.ts'
import { issuesOf, testDeliveries } from '../test/deliveries.ts'

const test = testDeliveries()

const second = 1000

describe('a caller without the scope of the data', () => {
  const unmapped = { destinationUrl: 'https://other.example/in' }
  const ofFeed = { types: ['lead.captured'] }

  it('cannot create or change a subscription that sends leads', async () => {
    const { workspaceId, subscriptionId } = await test.newScene()
    const caller = await test.client(test.cores[0]!, ['subscriptions:write', 'subscriptions:read'], workspaceId)
    for (const settings of [
      { mappedFields: ['name'] },
      { automatic: true },
      { automatic: true, policy: ofFeed },
      { policy: ofFeed },
    ])
      await expect(caller.createSubscription({ ...unmapped, ...settings })).rejects.toThrow('PermissionDenied')
    await expect(caller.updateSubscription({ subscriptionId, ...unmapped })).rejects.toThrow('PermissionDenied')
    const own = await caller.createSubscription(unmapped)
    for (const settings of [{ mappedFields: { names: ['name'] } }, { automatic: true }, { policy: ofFeed }])
      await expect(caller.updateSubscription({ subscriptionId: own.subscriptionId, ...settings })).rejects.toThrow(
        'PermissionDenied',
      )
    await caller.updateSubscription({ subscriptionId: own.subscriptionId, destinationUrl: 'https://third.example/' })
  })

  it('sees no answer of a destination, in any method that returns attempts', async () => {
    const { workspaceId, operator, leadId, subscriptionId, send } = await test.newScene()
    const { attemptId, deliveryId } = await send('key')
    const worker = await test.worker()
    const [claimed] = await worker.claim()
    const { claimId } = claimed!
    const response = { status: 422, text: 'unknown: Mia' }
    const outcome = { case: 'response' as const, value: response }
    await worker.record([{ deliveryId, attemptId, claimId, outcome }])
    expect((await operator.listDeliveryAttempts({ deliveryId })).attempts[0]!.responseText).toBe('unknown: Mia')
    expect((await operator.listDeliveries({})).deliveries[0]!.latestAttempt!.responseText).toBe('unknown: Mia')
    const idempotencyKey = 'key'
    for (const [scopes, text] of [
      [['leads:deliver'], ''],
      [['leads:deliver', 'leads:read'], 'unknown: Mia'],
    ] as const) {
      const caller = await test.client(test.cores[0]!, [...scopes], workspaceId)
      const { attempt, existing } = await caller.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey })
      expect([existing, attempt!.responseText]).toEqual([true, text])
    }
  })
})

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
      destinationUrl: 'http://crm.example:8443/••••',
      disableAfterNotFound: 5,
      droppedHeaders: [],
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
    ['the masked form of a URL', 'https://crm.example/••••', 'masked'],
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

describe('answers that reject a delivery', () => {
  it.each(
    someOf(
      [
        [401, DisabledReason.REJECTED_AUTH],
        [403, DisabledReason.REJECTED_AUTH],
        [410, DisabledReason.GONE],
      ],
      1,
    ),
  )('an answer with status %i disables the subscription and holds its other deliveries', async (status, reason) => {
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

  it.each(
    someOf(
      [
        [0, 12],
        [1, 1],
        [3, 3],
        [5, 5],
      ],
      1,
    ),
  )(
    '404 answers disable a subscription whose number for it is %i after %i of them, or never for 0',
    async (number, answers) => {
      const { operator, send, subscription, subscriptionId } = await test.newScene()
      const changed = await operator.updateSubscription({ subscriptionId, disableAfterNotFound: number })
      expect(changed.subscription!.disableAfterNotFound).toBe(number)
      const worker = await test.worker()
      for (let turn = 1; turn <= answers; turn += 1) {
        expect((await subscription()).status).toBe(SubscriptionStatus.ENABLED)
        await send()
        await worker.drain(404)
      }
      const isDisabled = (await subscription()).status === SubscriptionStatus.DISABLED
      expect(isDisabled).toBe(number !== 0)
    },
  )

  it('a subscription is created with a number of 404 answers, and rejects more than 100', async () => {
    const { operator, subscriptionId } = await test.newScene()
    const destinationUrl = 'https://crm.example/'
    for (const disableAfterNotFound of [0, 100]) {
      const { subscription } = await operator.createSubscription({ destinationUrl, disableAfterNotFound })
      expect(subscription!.disableAfterNotFound).toBe(disableAfterNotFound)
    }
    const issues = ['/disableAfterNotFound maximum']
    expect(await issuesOf(operator.createSubscription({ destinationUrl, disableAfterNotFound: 101 }))).toEqual(issues)
    expect(await issuesOf(operator.updateSubscription({ subscriptionId, disableAfterNotFound: 101 }))).toEqual(issues)
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
