import { describe, expect, it } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { isLong, itLong, someOf, today } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import type { RunningCore } from '../context.ts'
import { feedReaderOf } from '../feed/feed-reader.ts'
import { eraseVisitor } from '../privacy/erasures.ts'
import { claimDue } from '../test/claims.ts'
import { hasFailed, testCores } from '../test/cores.ts'
import { codeOf } from '../test/deliveries.ts'
import { openStream } from '../test/delivery-stream.ts'
import { flushFeed } from '../test/feed.ts'
import { bodyOf, destinationUrl, type HookScene, newHookScene, workerOn } from '../test/hook-scenes.ts'
import { visitorOf } from '../test/visitor-marks.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { captureLead } from './lead-capture.ts'
import { proceedRecoveries } from './recovery.ts'

const cores = testCores({ count: 2 })

describe('after a withdrawal, the text leaves no more', () => {
  const waits: Record<string, (scene: HookScene) => Promise<(() => Promise<unknown>) | undefined>> = {
    async 'in a retry'({ claim, finish }) {
      await finish(await claim(), 503, 'try later')
      return async () => cores.advance(10)
    },
    async 'in a retry after an answer that quotes it'({ claim, finish, secret }) {
      await finish(await claim(), 503, `cannot take ${secret} now`)
      return async () => cores.advance(10)
    },
    async 'when its disabled hook is enabled'({ hooks, hookId }) {
      await hooks.updateHook({ hookId, status: SubscriptionStatus.DISABLED })
      await Promise.all(cores.cores.map((core) => flushFeed(core)))
      return async () => {
        await hooks.updateHook({ hookId, status: SubscriptionStatus.ENABLED })
        cores.advance(1)
      }
    },
    async 'in a recovery'({ claim, finish, leads, hookId, secret }) {
      await finish(await claim(), 400, `unknown word: ${secret}`)
      return async () => {
        const since = { seconds: BigInt(Math.floor(cores.now() / 1000) - 3600), nanos: 0 }
        await leads.recoverDeliveries({ subscriptionId: hookId, since })
        await proceedRecoveries(cores.core)
      }
    },
    async 'in a retry by a person'({ claim, finish, leads, secret, latest }) {
      await finish(await claim(), 422, secret)
      return async () => {
        const { attemptId } = (await latest()).latestAttempt!
        await leads.retryDeliveryAttempt({ attemptId, idempotencyKey: secret })
      }
    },
    async 'when a worker takes over the attempt of a dead worker'({ claim }) {
      await claim()
      return async () => cores.advance(60)
    },
  }

  it.each(someOf(Object.keys(waits), 1))('%s', async (name) => {
    const scene = await newHookScene(cores)
    const sequence = await scene.say()
    const proceed = await waits[name]!(scene)
    await scene.withdraw(sequence)
    expect(await scene.places()).toEqual([])
    await proceed?.()
    const delivery = await scene.claim()
    expect(bodyOf(delivery)).toMatchObject({
      eventType: 'message.visitor',
      data: { body: '', redactedAt: expect.any(String), sequence },
    })
    expect(Buffer.from(delivery.body).toString()).not.toContain(scene.secret)
    await scene.finish(delivery, 200)
    expect((await scene.latest()).status).toBe(DeliveryStatus.ACCEPTED)
  })

  it('from an answer that is recorded later', async () => {
    const { say, claim, finish, withdraw, secret, places, latest } = await newHookScene(cores)
    const sequence = await say()
    const delivery = await claim()
    await withdraw(sequence)
    await finish(delivery, 400, `unknown word: ${secret}`)
    expect(await places()).toEqual([])
    expect((await latest()).latestAttempt).toMatchObject({ responseStatus: 400, responseText: '' })
  })

  it('from a worker that has not begun to send it; the withdrawal waits for the worker', async () => {
    const { say, withdraw, hookId } = await newHookScene(cores)
    const stream = await openStream(await workerOn(cores.other))
    const sequence = await say()
    const handed = await until('the delivery', async () => {
      await Promise.all(cores.cores.map((core) => flushFeed(core)))
      return stream.received().find(({ destination }) => destination === hookId)
    })
    let isAnswered = false
    const withdrawn = withdraw(sequence, cores.core).then(() => {
      isAnswered = true
    })
    await until('the recall', () => stream.messages.some(({ recalled }) => recalled.includes(hookId)))
    expect(isAnswered).toBe(false)
    const { deliveryId, attemptId, claimId, attemptNumber, destination } = handed
    const ids = { deliveryId, attemptId, claimId, attemptNumber, destination }
    stream.send({ results: [{ ...ids, outcome: { case: 'released', value: {} } }] })
    await withdrawn
    const next = await until('the delivery again', () =>
      stream.received().find((each) => each.destination === hookId && each.claimId !== claimId),
    )
    expect(bodyOf(next).data.body).toBe('')
    stream.answer([next])
    stream.leave()
  })

  it('whichever steps of its fan-out come before the withdrawal', async () => {
    const step = isLong ? 1 : 24
    for (let at = 1 + (isLong ? 0 : today % step), calls = at; at <= calls; at += step) {
      calls = 0
      const { say, claim, finish, withdraw, places } = await newHookScene(cores)
      let sequence: number | undefined
      let withdrawn: Promise<unknown> | undefined
      const hooked = cores.coreWithHook(() => {
        calls += sequence ? 1 : 0
        if (sequence && calls === at) withdrawn = withdraw(sequence)
        return withdrawn
      })
      wakeupsOf(hooked).start()
      sequence = await say(hooked)
      await flushFeed(hooked)
      await (withdrawn ?? withdraw(sequence))
      await wakeupsOf(hooked).stop()
      const delivery = await claim()
      expect([at, bodyOf(delivery).data.body]).toEqual([at, ''])
      expect(await places()).toEqual([])
      await finish(delivery, 200)
    }
  })

  itLong('after the process of the withdrawal died at any step', async () => {
    await cores.untilOneSurvives(
      async (mortal) => {
        const scene = await newHookScene(cores)
        const sequence = await scene.say()
        await scene.finish(await scene.claim(), 503, scene.secret)
        const died = await hasFailed(scene.withdraw(sequence, mortal))
        // The operator repeats the call that failed.
        if (died) await scene.withdraw(sequence)
        expect(await scene.places()).toEqual([])
        cores.advance(10)
        expect(bodyOf(await scene.claim()).data.body).toBe('')
        return died
      },
      { every: 2 },
    )
  })
})

describe('from the answer of an erasure on, no delivery of the visitor begins', () => {
  /** A visitor with a message and a lead, whose deliveries wait in the given way. */
  async function erasedScene() {
    const scene = await newHookScene(cores)
    const { leads, visitor, workspaceId } = scene
    const { subscriptionId } = await leads.createSubscription({
      destinationUrl,
      mappedFields: ['email'],
      automatic: true,
    })
    const { conversationId } = visitor
    const capture = (core = cores.core) =>
      captureLead(
        core,
        { workspaceId, source: 'crm', fields: { email: 'mia@example.com' }, conversationId },
        workspaceId,
      )
    return {
      ...scene,
      subscriptionId,
      capture,
      erase: async (core = cores.other) => eraseVisitor(core, await visitorOf(cores, visitor), 'desk'),
      destinations: [scene.hookId, subscriptionId],
    }
  }

  /** Claims what is due on both cores. Returns what goes to these destinations. */
  async function claimed(destinations: string[]) {
    await Promise.all(cores.cores.map((core) => flushFeed(core)))
    const all = await Promise.all(cores.cores.map((core) => claimDue(core)))
    return all.flat().filter(({ destination }) => destinations.includes(destination))
  }

  it('when they are queued, wait for a retry or are held', async () => {
    const { say, capture, claim, finish, erase, hooks, hookId, subscriptionId, destinations } = await erasedScene()
    await say()
    await finish(await claim(), 503)
    await capture()
    await finish(await claim(subscriptionId), 503)
    await hooks.updateHook({ hookId, status: SubscriptionStatus.DISABLED })
    await capture()
    await erase()
    await hooks.updateHook({ hookId, status: SubscriptionStatus.ENABLED })
    cores.advance(20)
    expect(await claimed(destinations)).toEqual([])
  })

  itLong('when a lead is fanned out or sent by a person meanwhile', async () => {
    const step = isLong ? 1 : 4
    for (let at = 1 + (isLong ? 0 : today % step), calls = at; at <= calls; at += step) {
      calls = 0
      const { capture, erase, leads, subscriptionId, destinations, secret } = await erasedScene()
      const leadId = await capture()
      await claimed(destinations)
      let erased: Promise<unknown> | undefined
      let isCaughtUp = false
      const hooked = cores.coreWithHook(() => {
        if (!isCaughtUp) return
        calls += 1
        if (calls === at) erased = erase()
        return erased
      })
      wakeupsOf(hooked).start()
      // It also reads the wake-ups of the cases before, which makes calls.
      await until('the core is current', wakeupsOf(hooked).isCurrent)
      isCaughtUp = true
      await capture(hooked).catch(() => {})
      await (erased ?? erase())
      await wakeupsOf(hooked).stop()
      const send = { leadId, subscriptionId, idempotencyKey: secret }
      expect(await codeOf(leads.createDeliveryAttempt(send))).toBe('LeadNotFound')
      expect([at, await claimed(destinations)]).toEqual([at, []])
    }
  })

  itLong('in a worker that has not begun to send it', async () => {
    const { capture, erase, subscriptionId } = await erasedScene()
    const stream = await openStream(await workerOn(cores.core))
    await capture()
    await until('the delivery', () => stream.received().some(({ destination }) => destination === subscriptionId))
    const erased = erase()
    await until('the recall', () => stream.messages.some(({ recalled }) => recalled.includes(subscriptionId)))
    await erased
    stream.leave()
  })

  it('and the feed shows no lead of the visitor', async () => {
    const { capture, erase, workspaceId } = await erasedScene()
    const leadId = await capture()
    await flushFeed(cores.core)
    const read = async (core: RunningCore) => {
      const options = { waitMs: 0, signal: new AbortController().signal }
      const { events } = await feedReaderOf(core).read({ workspaceId, cursor: '', types: [] }, options)
      return events.flatMap(({ lead }) => lead?.leadId ?? [])
    }
    expect(await read(cores.core)).toContain(leadId)
    await erase()
    for (const core of cores.cores) expect(await read(core)).toEqual([])
  })
})
