import { inspect } from 'node:util'
import { MongoClient } from 'mongodb'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { migrate } from '../database/schema.ts'
import { testDeliveries } from '../test/deliveries.ts'

const test = testDeliveries()
const client = new MongoClient(test.uri)
const db = () => client.db(test.name)
const migrations = () => db().collection<{ _id: number }>('migrations')
const subscriptions = () => db().collection<{ _id: string; destinationUrl?: string }>('leadSubscriptions')
beforeAll(() => test.open({ started: true }))
beforeEach(() => test.clear())
afterEach(() => migrations().updateMany({}, { $set: { contractedAt: new Date() } }))
afterAll(() => client.close())

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

  it('is sent from a document of the previous version, and shown masked', async () => {
    const { operator, subscriptionId, send } = await test.newScene()
    await subscriptions().updateOne({ _id: subscriptionId }, { $set: { destinationUrl }, $unset: { destination: '' } })
    await test.cores[0]!.liveSubscriptions.changed(subscriptionId)
    expect((await operator.getSubscription({ subscriptionId })).subscription!.destinationUrl).toBe(shown)
    await send()
    const [claimed] = await (await test.worker()).claim()
    expect(claimed!.url).toBe(destinationUrl)
    await subscriptions().updateOne({ _id: subscriptionId }, { $unset: { destinationUrl: '' } })
  })

  it('is taken from the plain URL of the previous version until the contract step removes it', async () => {
    await migrations().updateOne({ _id: 3 }, { $unset: { contractedAt: '' } })
    const { operator, leadId } = await test.newScene()
    const { subscriptionId } = await operator.createSubscription({ destinationUrl })
    // A core of the previous version changes only the plain URL.
    await subscriptions().updateOne({ _id: subscriptionId }, { $set: { destinationUrl: `${destinationUrl}3` } })
    await test.cores[0]!.liveSubscriptions.changed(subscriptionId)
    const requests = async () => {
      await operator.sendTestDelivery({ subscriptionId, idempotencyKey: crypto.randomUUID() })
      await operator.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: crypto.randomUUID() })
      const claimed = await (await test.worker(test.cores[1])).claim()
      await test.clear()
      return claimed.map(({ url }) => url)
    }
    expect(await requests()).toEqual([`${destinationUrl}3`, `${destinationUrl}3`])
    await migrate(db(), { contract: true, sealer: test.cores[0]!.secretBox })
    await test.cores[0]!.liveSubscriptions.changed(subscriptionId)
    expect(await stored()).not.toMatch(secrets)
    expect(await requests()).toEqual([`${destinationUrl}3`, `${destinationUrl}3`])
  })

  it('is stored sealed only, also in a database that nobody has contracted', async () => {
    await migrations().updateOne({ _id: 3 }, { $unset: { contractedAt: '' } })
    const { operator } = await test.newScene()
    const { subscriptionId } = await operator.createSubscription({ destinationUrl })
    await operator.updateSubscription({ subscriptionId, destinationUrl: `${destinationUrl}2` })
    expect(await stored()).not.toMatch(secrets)
  })
})
