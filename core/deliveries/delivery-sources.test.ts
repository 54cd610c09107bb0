import { createClient } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { HookService } from '#proto/hook/v1/hook_pb.js'
import { type ClaimedDelivery, DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { createAuthorizedTransport } from '../../core-client/authorized-transport.ts'
import { isLong, today } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import type { CoreContext } from '../context.ts'
import { type TestVisitor, testCores } from '../test/cores.ts'
import { codeOf } from '../test/deliveries.ts'
import { openStream } from '../test/delivery-stream.ts'
import { transportTo } from '../test/transports.ts'
import { placesOfTexts, visitorOf } from '../test/visitor-marks.ts'

const cores = testCores({ count: 2 })
const destinationUrl = 'https://1.1.1.1/hooks'
const managing = ['subscriptions:read', 'subscriptions:write', 'leads:read', 'leads:deliver', 'leads:write']
const texts = ['message.visitor', 'message.agent', 'message.bot']

async function transport(scopes: string[], workspaceId?: string, core = cores.core) {
  const token = await core.access.issue({ subject: 'ada', scopes, ...(workspaceId ? { workspaceId } : {}) })
  return createAuthorizedTransport(transportTo(core), token)
}

let scenes = 0

/** A site whose messages go to a hook and whose leads go to a subscription; a worker; a visitor. */
async function newScene(eventTypes = texts) {
  const site = await cores.newSite()
  const { workspaceId } = site
  const operator = await transport([...managing, 'messages:read'], workspaceId)
  const hooks = createClient(HookService, operator)
  const leads = createClient(LeadService, operator)
  const { hookId } = await hooks.createHook({ destinationUrl, eventTypes })
  const worker = createClient(LeadService, await transport(['deliveries:work']))
  const secret = `slip${++scenes}ofthetongue`
  const scene = {
    workspaceId,
    hooks,
    leads,
    hookId,
    secret,
    visitor: await cores.newVisitor(site),
    /** Returns the next delivery of the hook that a worker gets. */
    claim: (destination = hookId) =>
      until('a delivery', async () => {
        await Promise.all(cores.cores.map((core) => core.flushFeed()))
        const { deliveries } = await worker.claimDeliveries({ workerId: 'w', limit: 100, perDestination: 100 })
        return deliveries.find((each) => each.destination === destination)
      }),
    async finish({ deliveryId, attemptId, claimId }: ClaimedDelivery, status: number, text?: string) {
      const outcome = { case: 'response' as const, value: { status, ...(text !== undefined && { text }) } }
      const results = [{ deliveryId, attemptId, claimId, outcome }]
      expect((await worker.recordAttempts({ results })).recorded[0]?.counted).toBe(true)
    },
    say: async (core: CoreContext = cores.core) => {
      const { credentials } = scene.visitor
      const message = { credentials, clientOperationId: 'slip', body: secret, contentType: 'text' as const }
      return (await core.messages.sendAsVisitor(message)).event.sequence
    },
    withdraw: (sequence: number, core: CoreContext = cores.other) => withdraw(core, scene.visitor, sequence),
    /** Everything that is stored or shown of the text. */
    async places() {
      const { attempts } = await scene.latest().then(({ deliveryId }) => leads.listDeliveryAttempts({ deliveryId }))
      const stored = await placesOfTexts(cores, [secret])
      // Wake-ups are removed after half a minute. A search entry that was written late is removed by the
      // follower of the logs, 90 s behind.
      const lasting = stored.filter((place) => !/^(wakeups|searchEntries)/.test(place))
      return [...lasting, ...attempts.flatMap(({ responseText }) => (responseText.includes(secret) ? 'attempts' : []))]
    },
    async latest() {
      const { deliveries } = await leads.listDeliveries({ subscriptionId: hookId })
      return deliveries[0]!
    },
  }
  return scene
}

const withdraw = (core: CoreContext, { conversationId }: TestVisitor, sequence: number) =>
  core.redactions.redact({ conversationId, sequence, agentName: '' }, { workspaceId: undefined, anyAuthor: true })

const bodyOf = ({ body }: ClaimedDelivery) => JSON.parse(Buffer.from(body).toString())

type Scene = Awaited<ReturnType<typeof newScene>>

describe('after a withdrawal, the text leaves no more', () => {
  const waits: Record<string, (scene: Scene) => Promise<(() => Promise<unknown>) | undefined>> = {
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
      await Promise.all(cores.cores.map((core) => core.flushFeed()))
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
        await cores.core.deliveryRecoveries.proceed()
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

  it.each(Object.keys(waits))('%s', async (name) => {
    const scene = await newScene()
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
    const { say, claim, finish, withdraw, secret, places, latest } = await newScene()
    const sequence = await say()
    const delivery = await claim()
    await withdraw(sequence)
    await finish(delivery, 400, `unknown word: ${secret}`)
    expect(await places()).toEqual([])
    expect((await latest()).latestAttempt).toMatchObject({ responseStatus: 400, responseText: '' })
  })

  it('from a worker that has not begun to send it; the withdrawal waits for the worker', async () => {
    const { say, withdraw, hookId } = await newScene()
    const stream = await openStream(
      createClient(LeadService, await transport(['deliveries:work'], undefined, cores.other)),
    )
    const sequence = await say()
    const handed = await until('the delivery', async () => {
      await Promise.all(cores.cores.map((core) => core.flushFeed()))
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
    const step = isLong ? 1 : 8
    for (let at = 1 + (isLong ? 0 : today % step), calls = at; at <= calls; at += step) {
      calls = 0
      const { say, claim, finish, withdraw, places } = await newScene()
      let sequence: number | undefined
      let withdrawn: Promise<unknown> | undefined
      const hooked = cores.coreWithHook(() => {
        calls += sequence ? 1 : 0
        if (sequence && calls === at) withdrawn = withdraw(sequence)
        return withdrawn
      })
      hooked.wakeups.start()
      sequence = await say(hooked)
      await hooked.flushFeed()
      await (withdrawn ?? withdraw(sequence))
      await hooked.wakeups.stop()
      const delivery = await claim()
      expect([at, bodyOf(delivery).data.body]).toEqual([at, ''])
      expect(await places()).toEqual([])
      await finish(delivery, 200)
    }
  })

  it('after the process of the withdrawal died at any step', async () => {
    await cores.untilOneSurvives(
      async (mortal) => {
        const scene = await newScene()
        const sequence = await scene.say()
        await scene.finish(await scene.claim(), 503, scene.secret)
        const died = await scene.withdraw(sequence, mortal).then(
          () => false,
          () => true,
        )
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
    const scene = await newScene()
    const { leads, visitor, workspaceId } = scene
    const { subscriptionId } = await leads.createSubscription({
      destinationUrl,
      mappedFields: ['email'],
      automatic: true,
    })
    const { conversationId } = visitor
    const capture = (core = cores.core) =>
      core.leads.capture(
        { workspaceId, source: 'crm', fields: { email: 'mia@example.com' }, conversationId },
        workspaceId,
      )
    return {
      ...scene,
      subscriptionId,
      capture,
      erase: async (core = cores.other) => core.erasures.begin(await visitorOf(cores, visitor), 'desk'),
      destinations: [scene.hookId, subscriptionId],
    }
  }

  /** Claims what is due on both cores. Returns what goes to these destinations. */
  async function claimed(destinations: string[]) {
    const workers = await Promise.all(
      cores.cores.map(async (core) => createClient(LeadService, await transport(['deliveries:work'], undefined, core))),
    )
    await Promise.all(cores.cores.map((core) => core.flushFeed()))
    const all = await Promise.all(
      workers.map((each) => each.claimDeliveries({ workerId: 'w', limit: 100, perDestination: 100 })),
    )
    return all.flatMap(({ deliveries }) => deliveries.filter(({ destination }) => destinations.includes(destination)))
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

  it('when a lead is fanned out or sent by a person meanwhile', async () => {
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
      hooked.wakeups.start()
      await capture(hooked).catch(() => {})
      await (erased ?? erase())
      await hooked.wakeups.stop()
      const send = { leadId, subscriptionId, idempotencyKey: secret }
      expect(await codeOf(leads.createDeliveryAttempt(send))).toBe('LeadNotFound')
      expect([at, await claimed(destinations)]).toEqual([at, []])
    }
  })

  it('in a worker that has not begun to send it', async () => {
    const { capture, erase, subscriptionId } = await erasedScene()
    const stream = await openStream(createClient(LeadService, await transport(['deliveries:work'])))
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
    await cores.core.flushFeed()
    const read = async (core: CoreContext) => {
      const options = { waitMs: 0, signal: new AbortController().signal }
      const { events } = await core.feedReader.read({ workspaceId, cursor: '', types: [] }, options)
      return events.flatMap(({ lead }) => lead?.leadId ?? [])
    }
    expect(await read(cores.core)).toContain(leadId)
    await erase()
    for (const core of cores.cores) expect(await read(core)).toEqual([])
  })
})
