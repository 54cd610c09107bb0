import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { testDeliveries } from '../test/deliveries.ts'
import { openStream } from '../test/delivery-stream.ts'
import { addSuppressions } from './suppressing.ts'

const test = testDeliveries({ started: true })

const second = 1000
type Stream = Awaited<ReturnType<typeof test.stream>>

const received = (stream: Stream, count: number) =>
  until(`${count} deliveries`, () => stream.received().length >= count).then(stream.received)

describe('the stream of a worker', () => {
  it('the stream of a worker carries due deliveries, whatever core created them', async () => {
    const scene = await test.newScene()
    const before = await scene.send()
    const stream = await test.stream({ core: test.cores[1]! })
    expect(await received(stream, 1)).toMatchObject([{ attemptId: before.attemptId }])
    const after = await scene.send()
    expect((await received(stream, 2))[1]).toMatchObject({ attemptId: after.attemptId, leaseMs: 5_000 })
    stream.answer(stream.received())
    await until('both answers', () => stream.recorded().length === 2)
    expect(stream.recorded().every(({ held }) => held)).toBe(true)
    const { deliveries } = await scene.operator.listDeliveries({})
    expect(deliveries.map(({ status }) => status)).toEqual(Array(2).fill(DeliveryStatus.ACCEPTED))
  })

  it('the stream of a worker carries a retry when it is due, and a dead worker’s delivery when its lease ends', async () => {
    const scene = await test.newScene()
    const dead = await test.stream({ workerId: 'dead', limit: 1 })
    const lost = await scene.send('lost')
    await received(dead, 1)
    const stream = await test.stream({ core: test.cores[1]! })
    const failed = await scene.send('failed')
    stream.answer(await received(stream, 1), 503)
    dead.leave()
    await until('the answer', () => stream.recorded().length === 1)
    test.advance(5.1 * second)
    const next = (await received(stream, 3)).slice(1)
    expect(next.map(({ deliveryId, attemptNumber }) => [deliveryId, attemptNumber]).toSorted()).toEqual(
      [
        [lost.deliveryId, 1],
        [failed.deliveryId, 2],
      ].toSorted(),
    )
  })

  it('recalls the deliveries of a destination that was disabled, and of all destinations when someone is suppressed', async () => {
    const [scene, other] = [await test.newScene(), await test.newScene()]
    const stream = await test.stream({ core: test.cores[1]! })
    await scene.send()
    await other.send()
    await received(stream, 2)
    const recalled = () => stream.messages.flatMap((message) => message.recalled)
    const { subscriptionId, workspaceId } = scene
    await scene.operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    await until('the recall', () => recalled().length > 0)
    expect(new Set(recalled())).toEqual(new Set([subscriptionId]))
    stream.messages.length = 0
    const entries = [{ kind: 'email' as const, value: 'ada@example.com' }]
    await addSuppressions(test.cores[0]!, { workspaceId, entries, reason: '', addedBy: 'ada' })
    await until('the recall of all', () => recalled().includes(other.subscriptionId))
  })

  itLong('every delivery is sent to one of several workers with streams on two cores, and recorded once', async () => {
    const scenes = await Promise.all(Array.from({ length: 5 }, () => test.newScene()))
    const streams = await Promise.all(
      Array.from({ length: 4 }, (_, index) =>
        test.stream({ core: test.cores[index % 2]!, workerId: `w${index}`, limit: 20, perDestination: 5 }),
      ),
    )
    let isOver = false
    const answering = streams.map(async (stream) => {
      for (let answered = 0; !isOver; ) {
        const fresh = stream.received().slice(answered)
        answered += fresh.length
        if (fresh.length > 0) stream.answer(fresh, 200, 2)
        await new Promise(setImmediate)
      }
    })
    for (let round = 0; round < 40; round += 1) await Promise.all(scenes.map(({ send }) => send()))
    const recorded = () => streams.flatMap((stream) => stream.recorded())
    await until('all results', () => recorded().length >= 200)
    isOver = true
    await Promise.all(answering)
    const ids = streams.flatMap((stream) => stream.received().map(({ deliveryId }) => deliveryId))
    expect([ids.length, new Set(ids).size, recorded().filter(({ held }) => held).length]).toEqual([200, 200, 200])
  })

  it('the stream of a worker renews leases, also of deliveries that another core sent, and answers when a claim is lost', async () => {
    const { send } = await test.newScene()
    const [first, other] = [await test.stream(), await test.stream({ core: test.cores[1]!, limit: 0 })]
    await send()
    const [{ deliveryId, claimId } = { deliveryId: '', claimId: '' }] = await received(first, 1)
    first.leave()
    const renew = async (...claims: string[]) => {
      const before = other.messages.length
      other.send({ renewals: claims.map((each) => ({ deliveryId, claimId: each })) })
      const answers = () => other.messages.slice(before).flatMap(({ renewed }) => renewed)
      await until('the answers', () => answers().length === claims.length)
      return answers().map(({ held }) => held)
    }
    for (let step = 0; step < 3; step += 1) {
      test.advance(4 * second)
      expect(await renew(claimId, 'clm_forged')).toEqual([true, false])
    }
    expect(await (await test.worker()).claim()).toEqual([])
    test.advance(6 * second)
    expect(await (await test.worker()).claim()).toHaveLength(1)
    expect(await renew(claimId)).toEqual([false])
  })

  it('a result counts only under the current claim, and a repeated result is answered like the first', async () => {
    const scene = await test.newScene()
    const stream = await test.stream()
    const { deliveryId } = await scene.send()
    const [delivery] = await received(stream, 1)
    stream.answer([{ ...delivery!, claimId: 'clm_forged' }])
    stream.answer([{ ...delivery!, attemptNumber: 5_000 }])
    await until('two answers', () => stream.recorded().length === 2)
    expect(await scene.attempts(deliveryId)).toMatchObject([{ status: DeliveryStatus.SENDING }])
    stream.answer([delivery!])
    await until('three answers', () => stream.recorded().length === 3)
    stream.answer([delivery!], 500)
    await until('four answers', () => stream.recorded().length === 4)
    expect(stream.recorded().map(({ held }) => held)).toEqual([false, false, true, true])
    expect(await scene.attempts(deliveryId)).toMatchObject([{ status: DeliveryStatus.ACCEPTED }])
  })

  it('a delivery that is returned unsent is sent again and uses up no attempt', async () => {
    const { send } = await test.newScene()
    const stream = await test.stream()
    await send()
    const [{ deliveryId, attemptId, claimId } = { deliveryId: '', attemptId: '', claimId: '' }] = await received(
      stream,
      1,
    )
    stream.send({ results: [{ deliveryId, attemptId, claimId, outcome: { case: 'released', value: {} } }] })
    expect((await received(stream, 2))[1]).toMatchObject({ deliveryId, attemptId, attemptNumber: 1 })
    expect(stream.received()[1]!.claimId).not.toBe(claimId)
  })

  it('no delivery of a disabled subscription is sent, and held ones follow when it is enabled', async () => {
    const { send, operator, subscriptionId } = await test.newScene()
    await send()
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.DISABLED })
    const stream = await test.stream()
    expect(stream.received()).toEqual([])
    await operator.updateSubscription({ subscriptionId, status: SubscriptionStatus.ENABLED })
    expect(await received(stream, 1)).toMatchObject([{ destination: subscriptionId }])
  })

  it('a rate limit is kept over the streams of all cores', async () => {
    const { send, operator, subscriptionId } = await test.newScene()
    await operator.updateSubscription({ subscriptionId, maxPerSecond: 20 })
    const streams = [await test.stream(), await test.stream({ core: test.cores[1]! })]
    const began = performance.now()
    await Promise.all(Array.from({ length: 12 }, () => send()))
    const all = () => streams.flatMap((stream) => stream.received())
    await until('all', () => all().length === 12)
    // Two requests may start at once, and 19 follow in each second.
    expect(performance.now() - began).toBeGreaterThan((10 * 1000) / 19)
  })

  it('a worker that stops gets no more deliveries, and the core says when the last one was sent', async () => {
    const scene = await test.newScene()
    const stream = await test.stream()
    await Promise.all(Array.from({ length: 20 }, () => scene.send()))
    stream.send({ room: { limit: 0, perDestination: 1 } })
    await until('the end', () => stream.messages.some(({ drained }) => drained))
    const last = stream.received().length
    const later = await scene.send()
    expect(await (await test.worker()).claim({ waitMs: 2_000 })).toMatchObject([{ attemptId: later.attemptId }])
    expect(stream.received()).toHaveLength(last)
    stream.answer(stream.received())
    await until('all results', () => stream.recorded().length === last)
    stream.end()
    expect(await stream.ended).toBeUndefined()
  })

  it('a worker that stops is not sent again what it returns, although its destination answers quickly', async () => {
    const scene = await test.newScene()
    const stream = await test.stream({ limit: 6, perDestination: 3 })
    await Promise.all(Array.from({ length: 40 }, () => scene.send()))
    await until('deliveries', () => stream.received().length > 0)
    stream.answer(stream.received().slice(0, 1), 200, 1)
    await until('more in advance', () => stream.received().length > 6)
    stream.send({ room: { limit: 0, perDestination: 1 } })
    await until('the end', () => stream.messages.some(({ drained }) => drained))
    const last = stream.received().length
    const unsent = stream.received().slice(1)
    stream.send({
      results: unsent.map(({ deliveryId, attemptId, claimId }) => ({
        ...{ deliveryId, attemptId, claimId },
        outcome: { case: 'released' as const, value: {} },
      })),
    })
    await until('the returns', () => stream.recorded().length >= 1 + unsent.length)
    const other = await test.stream({ core: test.cores[1]!, workerId: 'other', limit: 200 })
    await until('all others', () => {
      other.answer(other.received().slice(other.recorded().length), 200, 1)
      return new Set(other.received().map(({ deliveryId }) => deliveryId)).size >= 39
    })
    expect(stream.received()).toHaveLength(last)
  })

  it('a stream without a worker id, with an invalid room or with the token of a workspace ends with an error', async () => {
    for (const bad of [{ workerId: '' }, { limit: 20_001 }, { perDestination: 0 }, { perDestination: 1_001 }]) {
      const stream = await test.stream(bad)
      expect(ConnectError.from(await stream.ended).message).toContain('ValidationFailed')
    }
    const { workspaceId } = await test.newScene()
    const ofWorkspace = await openStream(await test.client(test.cores[0]!, ['deliveries:work'], workspaceId))
    expect(ConnectError.from(await ofWorkspace.ended).code).toBe(Code.PermissionDenied)
  })

  it('a worker that sends results without end and reads no answer is disconnected', async () => {
    const stream = await test.stream({ limit: 0 })
    const claim = { deliveryId: 'dlv_none', claimId: 'clm_none' }
    const isRecorded = stream.recorded
    for (let count = 0; count < 60; count += 1)
      stream.send({ results: Array.from({ length: 1_000 }, () => ({ ...claim, attemptId: 'att_none' })) })
    expect(ConnectError.from(await stream.ended).message).toContain('RateLimited')
    expect(isRecorded().length).toBeLessThanOrEqual(50_000)
  })

  it('a stream ends if a result cannot be written, so that the worker sends the result elsewhere', async () => {
    const { send } = await test.newScene()
    let isAway = false
    const core = test.watchedCore((collection, method) => {
      if (isAway && `${collection}.${method}` === 'deliveries.bulkWrite') throw new Error('away')
    })
    await send()
    const stream = await test.stream({ core })
    const [delivery] = await received(stream, 1)
    isAway = true
    stream.answer([delivery!])
    expect(await stream.ended).toBeInstanceOf(ConnectError)
    const other = await test.stream({ limit: 0 })
    other.answer([delivery!])
    await until('the answer', () => other.recorded().some(({ held }) => held))
    await core.stop()
  })
})
