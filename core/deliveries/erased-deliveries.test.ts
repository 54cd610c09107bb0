import { describe, expect, it } from 'vitest'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { isLong, itLong, today } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import type { RunningCore } from '../context.ts'
import { feedReaderOf } from '../feed/feed-reader.ts'
import { flushFeed } from '../feed/jobs.ts'
import { eraseVisitor } from '../privacy/erasures.ts'
import { claimDue } from '../test/claims.ts'
import { testCores } from '../test/cores.ts'
import { codeOf } from '../test/deliveries.ts'
import { openStream } from '../test/delivery-stream.ts'
import { destinationUrl, newHookScene, workerOn } from '../test/hook-scenes.ts'
import { visitorOf } from '../test/visitor-marks.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { captureLead } from './lead-capture.ts'

const cores = testCores({ count: 2 })

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
      const hooked = cores.coreWithHook(() => {
        calls += 1
        if (calls === at) erased = erase()
        return erased
      })
      wakeupsOf(hooked).start()
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
