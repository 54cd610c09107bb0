import { inspect } from 'node:util'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { testClient } from '../../test/support/test-database.ts'
import { testDeliveries } from '../test/deliveries.ts'

const test = testDeliveries()
const db = () => testClient().db(test.name)
beforeAll(() => test.open({ started: true }))
beforeEach(() => test.clear())

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
