import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { itLong, runs, someOf } from '../../test/support/is-long.ts'
import { testClient } from '../../test/support/test-database.ts'
import { issuesOf, type TestDeliveries, testDeliveries } from '../test/deliveries.ts'

const test = testDeliveries({ started: true })

const present = 'https://crm.example/leads?key=PATH-SECRET'
const headers = [
  { name: 'Authorization', value: 'Bearer CRM-SECRET-TOKEN' },
  { name: 'X-Tenant', value: 'TENANT-SECRET' },
]
const names = ['authorization', 'x-tenant']

type Scene = Awaited<ReturnType<TestDeliveries['newScene']>>

async function newSubscription(scene?: Scene) {
  const { operator, leadId } = scene ?? (await test.newScene())
  const { subscriptionId } = await operator.createSubscription({ destinationUrl: present, headers })
  const update = (change: Omit<Parameters<typeof operator.updateSubscription>[0], '$typeName'>) =>
    operator.updateSubscription({ subscriptionId, ...change }).then(({ subscription }) => subscription!)
  return { operator, leadId, subscriptionId, update }
}

/** Sends a test delivery and returns the request that a worker gets for it. */
async function nextRequest({ operator, subscriptionId }: Awaited<ReturnType<typeof newSubscription>>) {
  await operator.sendTestDelivery({ subscriptionId, idempotencyKey: crypto.randomUUID() })
  const [claimed] = await (await test.worker(test.cores[1])).claim()
  await test.clear()
  return claimed!
}

describe('a new destination of a subscription', () => {
  it.each(
    someOf(
      [
        ['another host', 'https://other.example/leads'],
        ['a subdomain', 'https://a.crm.example/leads'],
        ['another port', 'https://crm.example:8443/leads'],
        ['another scheme', 'http://crm.example/leads'],
        ['the port of the other scheme', 'http://crm.example:443/leads'],
        ['the host with a dot at its end', 'https://crm.example./leads'],
        ['a host that begins with the present one', 'https://crm.example.evil.example/leads'],
        ['the present host in the path', 'https://evil.example/https://crm.example/leads'],
        ['the present host before an @ in the path', 'https://evil.example/crm.example@x'],
        ['an international name that looks the same', 'https://сrm.example/leads'],
      ],
      2,
    ),
  )('at %s gets no header that was entered for the previous one, and the answer names the headers', async (_, to) => {
    const subscription = await newSubscription()
    const changed = await subscription.update({ destinationUrl: to })
    expect([changed.headers, changed.droppedHeaders]).toEqual([[], names])
    const { url, headers: sent } = await nextRequest(subscription)
    expect(url).toBe(to)
    expect(JSON.stringify(sent)).not.toMatch(/SECRET|authorization|x-tenant/)
    // A repeat of the update, a change of the path and a second move still name them.
    expect((await subscription.update({ destinationUrl: to })).droppedHeaders).toEqual(names)
    expect((await subscription.update({ destinationUrl: 'https://third.example/' })).droppedHeaders).toEqual(names)
    // Moving back does not bring them back.
    expect((await subscription.update({ destinationUrl: present })).headers).toEqual([])
    expect(JSON.stringify((await nextRequest(subscription)).headers)).not.toMatch(/SECRET|authorization|x-tenant/)
    const entered = await subscription.update({ headers: { headers: [{ name: 'X-New', value: '1' }] } })
    expect([entered.headers.map(({ name }) => name), entered.droppedHeaders]).toEqual([['x-new'], []])
  })

  it.each([
    ['another path', 'https://crm.example/other'],
    ['the default port', 'https://crm.example:443/leads'],
    ['other case', 'HTTPS://CRM.Example/leads'],
  ])('with %s on the same origin keeps the headers', async (_, to) => {
    const subscription = await newSubscription()
    const changed = await subscription.update({ destinationUrl: to })
    expect([changed.headers.map(({ name }) => name), changed.droppedHeaders]).toEqual([names, []])
    expect((await nextRequest(subscription)).headers).toMatchObject({ authorization: 'Bearer CRM-SECRET-TOKEN' })
  })

  it('gets the headers whose values the same update sets, and refuses to keep a value', async () => {
    const subscription = await newSubscription()
    const destinationUrl = 'https://other.example/'
    const kept = { destinationUrl, headers: { headers: [{ name: 'authorization' }] } }
    expect(await issuesOf(subscription.update(kept))).toEqual(['/headers/0/value required'])
    const set = { destinationUrl, headers: { headers: [{ name: 'authorization', value: 'Bearer other' }] } }
    const changed = await subscription.update(set)
    expect([changed.headers.map(({ name }) => name), changed.droppedHeaders]).toEqual([['authorization'], []])
    const { headers: sent } = await nextRequest(subscription)
    expect(sent.authorization).toBe('Bearer other')
    expect(JSON.stringify(sent)).not.toContain('SECRET')
  })

  itLong('never gets old headers when updates of headers and destination run at once on two cores', async () => {
    const scene = await test.newScene()
    for (let round = 0; round < 10; round += 1) {
      const subscription = await newSubscription(scene)
      const { subscriptionId } = subscription
      const calls = await Promise.all(
        test.cores.map((core) => test.client(core, ['subscriptions:write'], scene.workspaceId)),
      )
      const keep = { subscriptionId, headers: { headers: [{ name: 'authorization' }] } }
      const move = { subscriptionId, destinationUrl: 'https://other.example/' }
      await Promise.allSettled([
        calls[0]!.updateSubscription(keep),
        calls[1]!.updateSubscription(move),
        calls[0]!.updateSubscription(keep),
      ])
      const { url, headers: sent } = await nextRequest(subscription)
      expect([url, sent.authorization]).toEqual(['https://other.example/', undefined])
    }
  })

  itLong('in any order of updates, sends each header value only to the origin for which it was entered', async () => {
    const origins = ['https://a.example', 'https://b.example', 'http://a.example']
    const step = fc.record(
      {
        move: fc.constantFrom(...origins),
        header: fc.constantFrom('set', 'keep', 'none'),
      },
      { requiredKeys: [] },
    )
    const scene = await test.newScene()
    await forAllAsync([fc.array(step, { minLength: 1, maxLength: 6 })], runs(60, 20), async (steps) => {
      const { operator } = scene
      let origin = origins[0]!
      const value = () => `value for ${origin}`
      const { subscriptionId } = await operator.createSubscription({
        destinationUrl: `${origin}/x`,
        headers: [{ name: 'x-key', value: value() }],
      })
      for (const { move, header } of steps) {
        const before = origin
        origin = move ?? origin
        const list = { set: [{ name: 'x-key', value: value() }], keep: [{ name: 'x-key' }], none: [] }
        const change = {
          ...(move && { destinationUrl: `${move}/x` }),
          ...(header && { headers: { headers: list[header] } }),
        }
        await operator.updateSubscription({ subscriptionId, ...change }).catch(() => {
          origin = before
        })
        const { url, headers: sent } = await nextRequest({ ...scene, subscriptionId, update: undefined as never })
        expect(new URL(url).origin).toBe(origin)
        if (sent['x-key'] !== undefined) expect(sent['x-key']).toBe(value())
      }
    })
  })
})

const db = () => testClient().db(test.name)

const destinationUrl = 'https://hooks.example:8443/T000/PATH-SECRET?token=QUERY-SECRET'

const shown = 'https://hooks.example:8443/••••'

const secrets = /PATH-SECRET|QUERY-SECRET/

/** Returns all stored documents as text. */
async function stored() {
  const names = (await db().listCollections().toArray()).map(({ name }) => name)
  const found = await Promise.all(names.map((name) => db().collection(name).find().toArray()))
  return inspect(found, { depth: 20, maxArrayLength: null, maxStringLength: null })
}

describe('the URL of a destination', () => {
  it('is sent to workers, and is in no document and in no answer to an operator', async () => {
    const { operator, leadId } = await test.newScene()
    const idempotencyKey = 'once'
    const settings = { destinationUrl, mappedFields: ['name'], idempotencyKey }
    const created = await operator.createSubscription(settings)
    const { subscriptionId } = created
    const attempt = { leadId, subscriptionId, idempotencyKey }
    const answers = [
      created,
      await operator.createSubscription(settings),
      await operator.listSubscriptions({}),
      await operator.getSubscription({ subscriptionId }),
      await operator.updateSubscription({ subscriptionId, destinationUrl: `${destinationUrl}&a=1` }),
      await operator.rotateSubscriptionSecret({ subscriptionId }),
      await operator.createDeliveryAttempt(attempt),
      await operator.createDeliveryAttempt(attempt),
      await operator.listDeliveries({}),
      await operator.listDeliveryAttempts({ leadId }),
    ]
    expect(inspect(answers, { depth: 20 })).not.toMatch(secrets)
    expect(created.subscription!.destinationUrl).toBe(shown)
    const [claimed] = await (await test.worker()).claim()
    expect(claimed!.url).toBe(`${destinationUrl}&a=1`)
    expect(await stored()).not.toMatch(secrets)
  })

  it('is stored sealed only', async () => {
    const { operator } = await test.newScene()
    const { subscriptionId } = await operator.createSubscription({ destinationUrl })
    await operator.updateSubscription({ subscriptionId, destinationUrl: `${destinationUrl}2` })
    expect(await stored()).not.toMatch(secrets)
  })
})
