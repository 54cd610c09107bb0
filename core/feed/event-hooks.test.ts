import { createClient } from '@connectrpc/connect'
import { expect, it } from 'vitest'
import { HookService } from '#proto/hook/v1/hook_pb.js'
import { type ClaimedDelivery, DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { type DeliveryEventType, deliveryEvents, feedEventTypes } from '../../contract/event-kinds.ts'
import { standardSignature } from '../../contract/webhook-headers.ts'
import { createAuthorizedTransport } from '../../core-client/authorized-transport.ts'
import { itLong } from '../../test/support/is-long.ts'
import { assignAgent, closeConversation } from '../conversations/assignments.ts'
import { proceedRecoveries } from '../deliveries/recovery.ts'
import { eraseVisitor } from '../privacy/erasures.ts'
import { claimDue, recordResults } from '../test/claims.ts'
import { answer, send, testCores } from '../test/cores.ts'
import { codeOf, issuesOf } from '../test/deliveries.ts'
import { sendFromDyingCores } from '../test/dying-cores.ts'
import { catchUpFeed, flushFeed } from '../test/feed.ts'
import { transportTo } from '../test/transports.ts'
import { finishErasures, visitorOf } from '../test/visitor-marks.ts'
import { accessOf } from '../transport/caller.ts'

const cores = testCores({ count: 2, started: false })

const managing = ['subscriptions:read', 'subscriptions:write', 'leads:read', 'leads:deliver', 'leads:write']
const reading = ['messages:read', 'sessions:read']
const destinationUrl = 'https://1.1.1.1/hooks?key=secret'

async function transport(scopes: string[], workspaceId?: string) {
  const token = await accessOf(cores.core).issue({ subject: 'ada', scopes, ...(workspaceId ? { workspaceId } : {}) })
  return createAuthorizedTransport(transportTo(cores.core), token)
}

/** A site, and a hook that sends events of these types. */
async function scene(eventTypes: string[] = feedEventTypes) {
  const site = await cores.newSite()
  const { workspaceId } = site
  const operator = await transport([...managing, ...reading], workspaceId)
  const hooks = createClient(HookService, operator)
  const leads = createClient(LeadService, operator)
  const created = await hooks.createHook({ destinationUrl, eventTypes })
  const claim = () => claimDue(cores.core)
  const finish = ({ deliveryId, attemptId, claimId }: ClaimedDelivery, status: number) => {
    const outcome = { case: 'response' as const, value: { status } }
    return recordResults(cores.core, [{ deliveryId, attemptId, claimId, outcome }])
  }
  /** Sends the deliveries that wait for the hook. Returns their verified bodies. */
  async function sent(status = 200) {
    await Promise.all(cores.cores.map((core) => flushFeed(core)))
    const mine = (await claim()).filter(({ destination }) => destination === created.hookId)
    for (const each of mine) await finish(each, status)
    return mine.map(({ deliveryId, body, headers }) => {
      const signature = standardSignature(created.secret, deliveryId, Number(headers['webhook-timestamp']), body)
      expect(headers['webhook-signature']).toBe(signature)
      return JSON.parse(Buffer.from(body).toString())
    })
  }
  return { site, workspaceId, hooks, leads, sent, claim, finish, ...created }
}

const shown = (bodies: { eventType: string; data: { body?: string } }[]) =>
  bodies.map(({ eventType, data }) => `${eventType} ${data.body ?? ''}`.trim()).toSorted()

it('the name of a hook or a destination is set, kept, changed and removed; wrong names are refused', async () => {
  const { hooks, leads } = await scene(['message.visitor'])
  const hook = { destinationUrl, eventTypes: ['message.visitor'] }
  const { hookId } = await hooks.createHook({ ...hook, name: 'Alerts' })
  const { subscriptionId } = await leads.createSubscription({ destinationUrl, name: 'CRM' })
  const names = async () => {
    const [[listed], { hook }, { subscription }] = await Promise.all([
      hooks.listHooks({}).then((answer) => answer.hooks.filter((each) => each.hookId === hookId)),
      hooks.getHook({ hookId }),
      leads.getSubscription({ subscriptionId }),
    ])
    expect(listed!.name).toBe(hook!.name)
    return [hook!.name, subscription!.name]
  }
  expect(await names()).toEqual(['Alerts', 'CRM'])
  await hooks.updateHook({ hookId, maxPerSecond: 1 })
  await leads.updateSubscription({ subscriptionId, maxPerSecond: 1 })
  expect(await names()).toEqual(['Alerts', 'CRM'])
  const longest = '😀'.repeat(80)
  await hooks.updateHook({ hookId, name: longest })
  await leads.updateSubscription({ subscriptionId, name: longest })
  expect(await names()).toEqual([longest, longest])
  for (const [name, rule] of [
    [`${longest}x`, 'maxLength'],
    ['two\nlines', 'pattern'],
  ] as const)
    for (const call of [
      () => hooks.createHook({ ...hook, name }),
      () => hooks.updateHook({ hookId, name }),
      () => leads.createSubscription({ destinationUrl, name }),
      () => leads.updateSubscription({ subscriptionId, name }),
    ])
      expect(await issuesOf(call())).toEqual([`/name ${rule}`])
  await hooks.updateHook({ hookId, name: '' })
  await leads.updateSubscription({ subscriptionId, name: '' })
  expect(await names()).toEqual(['', ''])
})

it('a retry of a lead’s delivery counts an attempt of a hook as unknown', async () => {
  const { site, sent, leads, hookId } = await scene(['message.visitor'])
  await send(cores.core, await cores.newVisitor(site), 'one')
  await sent(400)
  const { deliveries } = await leads.listDeliveries({ subscriptionId: hookId })
  const { attemptId } = deliveries[0]!.latestAttempt!
  const retry = (ofLead: boolean) => leads.retryDeliveryAttempt({ attemptId, ofLead, idempotencyKey: `${ofLead}` })
  expect(await codeOf(retry(true))).toBe('AttemptNotFound')
  expect((await retry(false)).attempt).toMatchObject({ attemptNumber: 2 })
})

it('a hook sends each event of its types that two cores wrote, with the data of its kind', async () => {
  const { site, sent } = await scene()
  const visitor = await cores.newVisitor(site)
  await send(cores.core, visitor, 'one')
  await answer(cores.other, visitor, 'two')
  const { conversationId } = visitor
  await assignAgent(cores.other, conversationId, { displayName: 'Ada' }, undefined)
  await closeConversation(cores.core, conversationId, undefined)
  await cores.identify(visitor, site.sign({ sub: 'customer-1' }))
  const bodies = await sent()
  expect(shown(bodies)).toEqual([
    'conversation.assigned',
    'conversation.closed',
    'conversation.created',
    'message.agent two',
    'message.visitor one',
    'visitor.identified',
  ])
  for (const { eventType, data, contractVersion } of bodies) {
    const kind = deliveryEvents[eventType as DeliveryEventType]
    const { properties, required = [] } = kind.data as { properties: object; required?: string[] }
    expect(Object.keys(properties)).toEqual(expect.arrayContaining(Object.keys(data)))
    expect(Object.keys(data)).toEqual(expect.arrayContaining(required))
    expect(Object.values(data)).not.toContain('')
    expect(contractVersion).toBe(kind.version)
  }
  expect(await sent()).toEqual([])
})

it('a hook sends only its types, and after a change the new ones', async () => {
  const { site, hooks, hookId, sent } = await scene(['message.visitor'])
  const visitor = await cores.newVisitor(site)
  await send(cores.core, visitor, 'one')
  await answer(cores.core, visitor, 'two')
  expect(shown(await sent())).toEqual(['message.visitor one'])
  await hooks.updateHook({ hookId, eventTypes: { types: ['message.agent'] } })
  await send(cores.core, visitor, 'three')
  await answer(cores.core, visitor, 'four')
  expect(shown(await sent())).toEqual(['message.agent four'])
})

it('a hook gets no event from before its creation, and each event that happens while a core dies', async () => {
  const { site, workspaceId } = await scene()
  const visitor = await cores.newVisitor(site)
  await send(cores.core, visitor, 'before')
  await flushFeed(cores.core)
  const hooks = createClient(HookService, await transport([...managing, ...reading], workspaceId))
  const { hookId } = await hooks.createHook({ destinationUrl, eventTypes: ['message.visitor'] })
  await sendFromDyingCores(cores, visitor)
  cores.advance(120)
  await catchUpFeed(cores.other)
  await catchUpFeed(cores.core)
  const log = (await cores.log(visitor.conversationId)).flatMap(({ message }) => message?.body ?? [])
  const { deliveries } = cores.core.database.collections
  const stored = await deliveries.find({ subscriptionId: hookId }).toArray()
  const bodies = stored.map(({ body }) => JSON.parse(Buffer.from((body as { buffer: Uint8Array }).buffer).toString()))
  expect(bodies.map(({ data }) => data.body).toSorted()).toEqual(log.slice(1).toSorted())
  expect(log.length).toBeGreaterThan(2)
})

it('a hook is retried, disabled, recovered and tested like a subscription', async () => {
  const { site, hooks, leads, hookId, sent } = await scene(['message.visitor'])
  await send(cores.core, await cores.newVisitor(site), 'one')
  await sent(410)
  const { hook, audit } = await hooks.getHook({ hookId })
  expect(hook).toMatchObject({ status: SubscriptionStatus.DISABLED, destinationUrl: 'https://1.1.1.1/••••' })
  expect(audit.map(({ action }) => action)).toEqual(['disabled', 'created'])
  await hooks.updateHook({ hookId, status: SubscriptionStatus.ENABLED })
  await leads.recoverDeliveries({ subscriptionId: hookId, since: { seconds: 0n, nanos: 0 } })
  await proceedRecoveries(cores.core)
  expect(shown(await sent())).toEqual(['message.visitor one'])
  await leads.sendTestDelivery({ subscriptionId: hookId, idempotencyKey: hookId })
  const [sample] = await sent()
  expect(sample).toMatchObject({ test: true, data: deliveryEvents['message.visitor'].example })
  const { deliveries } = await leads.listDeliveries({ subscriptionId: hookId })
  expect(deliveries.map(({ status }) => status)).toEqual([DeliveryStatus.ACCEPTED, DeliveryStatus.ACCEPTED])
})

it('a hook is a resource apart from lead subscriptions', async () => {
  const { hooks, leads, hookId, workspaceId } = await scene()
  expect(hookId).toMatch(/^hook_/)
  const { subscriptionId } = await leads.createSubscription({ destinationUrl, automatic: true })
  expect((await leads.listSubscriptions({})).subscriptions.map((each) => each.subscriptionId)).toEqual([subscriptionId])
  expect((await hooks.listHooks({})).hooks.map((each) => each.hookId)).toEqual([hookId])
  for (const call of [
    () => hooks.getHook({ hookId: subscriptionId }),
    () => hooks.updateHook({ hookId: subscriptionId, maxPerSecond: 5 }),
    () => hooks.rotateHookSecret({ hookId: subscriptionId }),
    () => hooks.deleteHook({ hookId: subscriptionId }),
  ])
    expect(await codeOf(call())).toBe('SubscriptionNotFound')
  const { leadId } = await leads.captureLead({ source: 'api', fields: {} })
  const request = { leadId, subscriptionId: hookId, idempotencyKey: leadId }
  expect(await codeOf(leads.createDeliveryAttempt(request))).toBe('SubscriptionNotFound')
  const foreign = createClient(HookService, await transport([...managing, ...reading], (await scene()).workspaceId))
  expect(await codeOf(foreign.getHook({ hookId }))).toBe('SubscriptionNotFound')
  await hooks.deleteHook({ hookId })
  expect((await hooks.listHooks({ workspaceId })).hooks).toEqual([])
})

it('a caller without the scope of an event can neither choose it nor change a hook that sends it', async () => {
  const { leads, hookId, workspaceId } = await scene(['message.visitor'])
  const hooks = createClient(HookService, await transport(managing, workspaceId))
  const moved = 'https://1.0.0.1/'
  const subscriptions = createClient(LeadService, await transport(managing, workspaceId))
  for (const call of [
    () => hooks.createHook({ destinationUrl, eventTypes: ['lead.captured', 'message.visitor'] }),
    () => hooks.updateHook({ hookId, destinationUrl: moved }),
    () => hooks.updateHook({ hookId, headers: { headers: [] } }),
    () => subscriptions.updateSubscription({ subscriptionId: hookId, destinationUrl: moved }),
  ])
    expect(await codeOf(call())).toBe('PermissionDenied')
  const { hookId: own } = await hooks.createHook({ destinationUrl, eventTypes: ['lead.captured'] })
  expect(await codeOf(hooks.updateHook({ hookId: own, eventTypes: { types: ['visitor.left'] } }))).toBe(
    'PermissionDenied',
  )
  expect(await issuesOf(hooks.createHook({ destinationUrl, eventTypes: [] }))).toEqual(['/eventTypes minItems'])
  const unknown = ['lead.ready-for-delivery', 'x']
  expect(await issuesOf(hooks.createHook({ destinationUrl, eventTypes: unknown }))).toEqual([
    '/eventTypes/0 enum',
    '/eventTypes/1 enum',
  ])
  const notALead = leads.updateSubscription({ subscriptionId: hookId, sentNames: {}, mappedFields: { names: ['a'] } })
  expect(await issuesOf(notALead)).toEqual(['/mappedFields maxItems'])
})

itLong('the erasure of a visitor removes what waits for a hook', async () => {
  const { site, hookId, hooks } = await scene(['message.visitor'])
  await hooks.updateHook({ hookId, status: SubscriptionStatus.DISABLED })
  const [gone, stays] = [await cores.newVisitor(site), await cores.newVisitor(site)]
  await send(cores.core, gone, 'gone')
  await send(cores.core, stays, 'stays')
  await flushFeed(cores.core)
  const { deliveries } = cores.core.database.collections
  const kept = async () =>
    (await deliveries.find({ subscriptionId: hookId }).toArray()).map((each) => each.conversationId)
  expect((await kept()).toSorted()).toEqual([gone.conversationId, stays.conversationId].toSorted())
  await eraseVisitor(cores.core, await visitorOf(cores, gone), 'desk')
  await finishErasures(cores)
  expect(await kept()).toEqual([stays.conversationId])
})
