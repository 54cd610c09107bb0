import { describe, expect, it } from 'vitest'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { bodySignature } from '../../contract/webhook-headers.ts'
import { issuesOf, testDeliveries } from '../test/deliveries.ts'
import { activatedSecrets, activeSecret, newWebhookSecret, rotatedSecrets } from './webhook-requests.ts'

const test = testDeliveries()

const hour = 3_600_000
const isSignedWith = ({ headers, body }: ClaimedDelivery, secret: string) =>
  headers['x-service-webhook-signature'] === `sha256=${bodySignature(secret, body)}`

/** Creates a subscription and rotates its secret. The overlap of the two secrets has begun. */
async function rotating(overlapSeconds = 3600) {
  const scene = await test.newScene()
  const { subscriptionId, operator, secret: old } = scene
  const rotated = await operator.rotateSubscriptionSecret({ subscriptionId, overlapSeconds })
  const worker = await test.worker()
  const claimOne = async () => {
    await scene.send()
    const [claimed] = await worker.claim()
    return claimed!
  }
  const activate = (secretId = rotated.subscription!.secrets[0]!.secretId) =>
    operator.activateSubscriptionSecret({ subscriptionId, secretId })
  return { ...scene, old, secret: rotated.secret, worker, claimOne, activate }
}

describe('the activation of a rotated secret', () => {
  it('the old secret signs the body until the new one is activated, and both sign `webhook-signature`', async () => {
    const { old, secret, claimOne, activate, worker, subscription } = await rotating()
    expect((await subscription()).secrets.map(({ active }) => active)).toEqual([false, true])
    const before = await claimOne()
    expect(isSignedWith(before, old)).toBe(true)
    await worker.answer(before, 200)
    await activate()
    expect((await subscription()).secrets.map(({ active }) => active)).toEqual([true, false])
    const after = await claimOne()
    expect(isSignedWith(after, secret)).toBe(true)
    for (const { headers } of [before, after]) expect(headers['webhook-signature']!.split(' ')).toHaveLength(2)
  })

  it('the new secret signs the body when the overlap ends without an activation', async () => {
    const { secret, claimOne } = await rotating(60)
    test.advance(61_000)
    const claimed = await claimOne()
    expect(isSignedWith(claimed, secret)).toBe(true)
    expect(claimed.headers['webhook-signature']!.split(' ')).toHaveLength(1)
  })

  it('a rotation with an overlap of more than a week is rejected', async () => {
    const { operator, subscriptionId } = await test.newScene()
    const rotated = operator.rotateSubscriptionSecret({ subscriptionId, overlapSeconds: 604_801 })
    expect(await issuesOf(rotated)).toEqual(['/overlapSeconds maximum'])
  })

  it('a rotation without an overlap needs no activation', async () => {
    const { secret, claimOne } = await rotating(0)
    expect(isSignedWith(await claimOne(), secret)).toBe(true)
  })

  it('a repeated activation changes nothing, and concurrent activations are recorded once', async () => {
    const { activate, operator, subscriptionId } = await rotating()
    await Promise.all([activate(), activate(), activate()])
    await activate()
    const { audit } = await operator.getSubscription({ subscriptionId })
    expect(audit.filter(({ action }) => action === 'secret_activated')).toHaveLength(1)
  })

  it('an activation is rejected for an unknown secret, an expired secret and a secret of another workspace', async () => {
    const { activate, operator, subscriptionId, subscription } = await rotating(60)
    const ids = (await subscription()).secrets.map(({ secretId }) => secretId)
    await expect(activate('key_unknown')).rejects.toThrow('NotFound')
    test.advance(61_000)
    await expect(activate(ids[1])).rejects.toThrow('NotFound')
    const { operator: stranger } = await test.newScene()
    const call = stranger.activateSubscriptionSecret({ subscriptionId, secretId: ids[0]! })
    await expect(call).rejects.toThrow('SubscriptionNotFound')
    await expect(operator.activateSubscriptionSecret({ subscriptionId, secretId: ids[0]! })).resolves.toBeDefined()
  })

  it.each([401, 403])('an answer %i disables the subscription after the overlap, but not during it', async (status) => {
    const { claimOne, worker, subscription } = await rotating()
    await worker.answer(await claimOne(), status)
    expect((await subscription()).status).toBe(SubscriptionStatus.ENABLED)
    test.advance(hour + 1)
    await worker.answer(await claimOne(), status)
    expect((await subscription()).status).toBe(SubscriptionStatus.DISABLED)
  })

  it('an answer 401 after the overlap does not disable the subscription if its delivery was claimed during the overlap', async () => {
    const { claimOne, worker, subscription } = await rotating(10)
    const inFlight = await claimOne()
    test.advance(11_000)
    await worker.answer(inFlight, 401)
    expect((await subscription()).status).toBe(SubscriptionStatus.ENABLED)
  })

  it('an answer 401 does not disable the subscription if the rotation began while its request was under way', async () => {
    const { operator, subscriptionId, subscription, send } = await test.newScene()
    const worker = await test.worker()
    await send()
    const [inFlight] = await worker.claim()
    test.advance(1000)
    await operator.rotateSubscriptionSecret({ subscriptionId, overlapSeconds: 0 })
    await worker.answer(inFlight!, 401)
    expect((await subscription()).status).toBe(SubscriptionStatus.ENABLED)
  })

  it('an answer 410 disables the subscription, even during the overlap', async () => {
    const { claimOne, worker, subscription } = await rotating()
    await worker.answer(await claimOne(), 410)
    expect((await subscription()).status).toBe(SubscriptionStatus.DISABLED)
  })
})

describe('the active secret of several rotations', () => {
  it('is the newest activated one, or the oldest live one if none is activated', () => {
    const at = (ms: number) => new Date(1_000_000 + ms)
    const kept = (ms: number) => newWebhookSecret({ seal: String }, at(ms)).kept
    const [first, second, third] = [kept(0), kept(1), kept(2)]
    const once = rotatedSecrets([first], second, { seen: [first], overlapSeconds: 10 })
    const twice = rotatedSecrets(once, third, { seen: once, overlapSeconds: 20 })
    const idAt = (secrets: typeof twice, ms: number) => activeSecret(secrets, at(ms))?.secretId
    expect([3, 10_002, 20_003].map((ms) => idAt(twice, ms))).toEqual([first, second, third].map((s) => s.secretId))
    expect(idAt(activatedSecrets(twice, second.secretId), 3)).toBe(second.secretId)
    expect(idAt(activatedSecrets(twice, third.secretId), 3)).toBe(third.secretId)
  })
})
