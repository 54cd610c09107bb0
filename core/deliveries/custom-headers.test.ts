import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAll } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { issuesOf, testDeliveries } from '../test/deliveries.ts'
import { headerIssues } from './subscription-settings.ts'

const test = testDeliveries()

const destinationUrl = 'https://crm.example/leads'
const reserved = [
  'X-Service-Webhook-Id',
  'x-service-anything',
  'webhook-id',
  'Webhook-Custom',
  'Host',
  'Content-Type',
  'content-length',
  'Transfer-Encoding',
  'Connection',
  'Keep-Alive',
  'TE',
  'Trailer',
  'Upgrade',
  'Proxy-Authorization',
  'User-Agent',
  'X-Correlation-Id',
  'Expect',
]

describe('custom headers', () => {
  it('custom headers are sent with each request; API answers and stored documents never contain their plain values', async () => {
    const { operator, leadId } = await test.newScene()
    const headers = [
      { name: 'Authorization', value: 'Bearer very-secret' },
      { name: 'X-Tenant', value: 'shop 7' },
    ]
    const created = await operator.createSubscription({ destinationUrl, headers })
    const { subscriptionId } = created
    const masked = [
      { name: 'authorization', masked: '••••' },
      { name: 'x-tenant', masked: '••••' },
    ]
    expect(created.subscription!.headers).toMatchObject(masked)
    const listed = await operator.listSubscriptions({})
    const got = await operator.getSubscription({ subscriptionId })
    const stored = await test.cores[0]!.database.collections.leadSubscriptions.findOne({ _id: subscriptionId })
    expect(inspect([created, listed, got, stored], { depth: 12 })).not.toMatch(/very-secret|shop 7/)
    await operator.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: 'once' })
    const [claimed] = await (await test.worker()).claim()
    expect(claimed!.headers).toMatchObject({ authorization: 'Bearer very-secret', 'x-tenant': 'shop 7' })
    expect(claimed!.headers['content-type']).toBe('application/json')
  })

  it('an update replaces the list, and a header without a value keeps its stored value', async () => {
    const { operator, subscriptionId, send } = await test.newScene()
    const first = [
      { name: 'X-One', value: '1' },
      { name: 'X-Two', value: '2' },
    ]
    await operator.updateSubscription({ subscriptionId, headers: { headers: first } })
    const next = [{ name: 'x-TWO' }, { name: 'X-Three', value: '3' }]
    const { subscription } = await operator.updateSubscription({ subscriptionId, headers: { headers: next } })
    expect(subscription!.headers.map(({ name }) => name)).toEqual(['x-two', 'x-three'])
    await operator.updateSubscription({ subscriptionId, automatic: true })
    await send()
    const [claimed] = await (await test.worker()).claim()
    expect(claimed!.headers).toMatchObject({ 'x-two': '2', 'x-three': '3' })
    expect(claimed!.headers).not.toHaveProperty('x-one')
    const none = await operator.updateSubscription({ subscriptionId, headers: { headers: [] } })
    expect(none.subscription!.headers).toEqual([])
  })

  it.each(reserved)('the header %s is rejected as reserved when a subscription is created or updated', async (name) => {
    const { operator, subscriptionId } = await test.newScene()
    const headers = [{ name, value: 'x' }]
    const issues = ['/headers/0/name reserved']
    expect(await issuesOf(operator.createSubscription({ destinationUrl, headers }))).toEqual(issues)
    expect(await issuesOf(operator.updateSubscription({ subscriptionId, headers: { headers } }))).toEqual(issues)
  })

  it.each([
    ['a line break in the value', [{ name: 'x-a', value: 'a\r\nX-Evil: 1' }], '/headers/0/value pattern'],
    ['a null character in the value', [{ name: 'x-a', value: 'a\0b' }], '/headers/0/value pattern'],
    ['a character outside of ASCII', [{ name: 'x-a', value: 'ä' }], '/headers/0/value pattern'],
    ['an empty value', [{ name: 'x-a', value: '' }], '/headers/0/value pattern'],
    ['a space at the end', [{ name: 'x-a', value: 'a ' }], '/headers/0/value pattern'],
    ['a long value', [{ name: 'x-a', value: 'a'.repeat(1025) }], '/headers/0/value maxLength'],
    ['no value for a new header', [{ name: 'x-a' }], '/headers/0/value required'],
    ['a line break in the name', [{ name: 'x-a\r\nb', value: 'x' }], '/headers/0/name pattern'],
    ['a colon in the name', [{ name: 'x:a', value: 'x' }], '/headers/0/name pattern'],
    ['an empty name', [{ name: '', value: 'x' }], '/headers/0/name pattern'],
    ['a name of an object’s prototype', [{ name: '__proto__', value: 'x' }], '/headers/0/name pattern'],
    ['a long name', [{ name: 'x'.repeat(65), value: 'x' }], '/headers/0/name maxLength'],
    [
      'names that differ only in case',
      [
        { name: 'X-A', value: '1' },
        { name: 'x-a', value: '2' },
      ],
      '/headers/1/name uniqueItems',
    ],
    [
      'more than ten',
      Array.from({ length: 11 }, (_, index) => ({ name: `x-${index}`, value: 'x' })),
      '/headers maxItems',
    ],
  ])('custom headers with %s are rejected', async (_, headers, issue) => {
    const { operator, subscriptionId } = await test.newScene()
    expect(await issuesOf(operator.updateSubscription({ subscriptionId, headers: { headers } }))).toEqual([issue])
  })

  it('every accepted header is valid for HTTP', () => {
    const accepted = fc.record({ name: fc.string(), value: fc.string() }).filter((each) => {
      return headerIssues([each], []).every((issue) => issue === undefined)
    })
    forAll([accepted], runs(100, 10), ({ name, value }) => {
      expect(new Headers([[name, value]]).get(name)).toBe(value)
    })
  })
})
