import { create } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { DeliveryAttemptSchema, DeliveryStatus, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { usualFields } from '../../browser/chat/usual-fields.ts'
import { valueText } from './changes/changes-view.tsx'
import { isRetryable, outcomeText, statusByName } from './deliveries/delivery-words.ts'
import { originProblem, toOrigin } from './installations/installation-words.ts'
import { namedFields } from './leads/lead-titles.ts'
import { addIdempotencyKeys } from './operations.ts'
import { type KnownRoute, parseRoute, pathOf, placeOf } from './router.ts'
import { countOfDeliveries, destinationProblem, fieldProblem } from './subscriptions/subscription-words.ts'
import { countOf, formatFull, formatShort, formatTime } from './time.ts'

it('a failed delivery can be retried, except one whose body was too large to be sent', () => {
  const failed = { status: DeliveryStatus.FAILED, responseClass: ResponseClass.REJECTED_PAYLOAD }
  const refused = create(DeliveryAttemptSchema, { ...failed, responseStatus: 422 })
  expect([outcomeText(refused), isRetryable(refused)]).toEqual(['Payload rejected, HTTP 422', true])
  const tooLarge = create(DeliveryAttemptSchema, failed)
  expect([outcomeText(tooLarge), isRetryable(tooLarge)]).toEqual(['Larger than 64 KiB; nothing was sent', false])
})

describe('the parser of routes', () => {
  it.each<KnownRoute>([
    { view: 'inbox' },
    { view: 'conversation', conversationId: 'cnv_a/b?', part: 'details', queue: 'mine', q: 'a b' },
    { view: 'installation', siteKey: 'pk_1' },
    { view: 'deliveries', status: 'failed', subscription: 'sub_1' },
    { view: 'delivery', deliveryId: 'dlv_1' },
    { view: 'new-subscription' },
    { view: 'subscription', subscriptionId: 'sub_1' },
    { view: 'lead', leadId: 'lead_1' },
  ])('parseRoute returns the original route for the path of $view', (route) => {
    expect(parseRoute(pathOf(route))).toEqual(route)
  })

  it('a change of a filter or a tab is no other place', () => {
    const places = (...paths: string[]) => new Set(paths.map((path) => placeOf(parseRoute(`/console/${path}`)))).size
    expect(places('conversations?queue=mine', 'conversations?q=x', '')).toBe(1)
    expect(places('installations/pk_1', 'installations/pk_1/look')).toBe(1)
    expect(places('conversations/cnv_1', 'conversations/cnv_1/details', 'conversations/cnv_2')).toBe(3)
    expect(places('deliveries?status=failed', 'deliveries?hours=1')).toBe(1)
  })

  it('parseRoute returns the inbox for the root and `unknown` for an unknown path', () => {
    expect(parseRoute('/console/')).toEqual({ view: 'inbox' })
    expect(parseRoute('/console/elsewhere')).toEqual({ view: 'unknown' })
    expect(parseRoute('/console/conversations/%')).toMatchObject({ conversationId: '%' })
    expect(pathOf({ view: 'conversation', conversationId: 'cnv_1' })).toBe('/console/conversations/cnv_1')
  })
})

describe('the input checks of the console', () => {
  it('the console ignores an unknown status of deliveries in its URL', () => {
    expect(statusByName('dead_lettered')).toBeTypeOf('number')
    for (const bad of ['1', 'unspecified', 'nothing', '']) expect(statusByName(bad), bad).toBeUndefined()
  })

  it('the console accepts valid origins and describes invalid ones', () => {
    for (const good of [
      'https://a.example',
      'http://localhost:8081',
      'https://*.a.example',
      'https://*.a.example:8443',
    ])
      expect(originProblem(good)).toBeUndefined()
    for (const bad of [
      'https://a.example/',
      'https://A.example',
      'http://*.a.example',
      'https://*.com',
      'https://a.*.b',
      'a shop',
    ])
      expect(originProblem(bad), bad).toBeTypeOf('string')
    const meant = [
      'shop.example',
      'HTTPS://Shop.example/cart?x',
      'localhost:8081',
      '127.0.0.1:80',
      'https://*.a.example',
    ]
    expect(meant.map(toOrigin)).toEqual([
      'https://shop.example',
      'https://shop.example',
      'http://localhost:8081',
      'http://127.0.0.1',
      'https://*.a.example',
    ])
  })

  it('the console accepts valid destinations and lead fields, and describes invalid ones', () => {
    expect(destinationProblem('https://a.example/hook?x=1')).toBeUndefined()
    for (const bad of ['ftp://a.example', 'https://u:p@a.example', 'https://a.example/#x', ''])
      expect(destinationProblem(bad), bad).toBeTypeOf('string')
    expect(fieldProblem('e-mail_1')).toBeUndefined()
    for (const bad of ['reference', 'a b', 'ä', 'email=mail', '']) expect(fieldProblem(bad), bad).toBeTypeOf('string')
  })
})

it('the value of a changed setting is shown in words, and never as JSON', () => {
  const fields = [
    { name: 'name', label: 'Name', type: 'text' },
    { name: 'email', label: 'Your e-mail', type: 'email', required: true },
  ]
  const words: [value: unknown, text: string][] = [
    ['true', 'Enabled'],
    ['CONNECTION_STATUS_DISABLED', 'Disabled'],
    ['Lamp shop', 'Lamp shop'],
    [['https://a.example', 'https://b.example'], 'https://a.example, https://b.example'],
    [{ texts: ['Where is my order?', 'A person, please'] }, 'Where is my order?, A person, please'],
    [{ fields }, 'Name, Your e-mail'],
    [{ texts: ['Say "yes"'] }, 'Say "yes"'],
    [{ hours: [{ weekday: 1, from: '09:00', to: '17:00' }] }, 'Changed'],
    [{ dates: [{ date: '2026-12-24' }] }, 'Changed'],
    [{ de: { title: 'Laden' } }, 'Changed'],
    [[{ weekday: 1 }], 'Changed'],
    [{}, 'Changed'],
    [JSON.stringify({ fields }).slice(0, 80), 'Name'],
  ]
  for (const [value, text] of words)
    expect(valueText(typeof value === 'string' ? value : JSON.stringify(value))).toBe(text)
})

it('a field of a form has one name: its usual label, in leads, form cards and contact details', () => {
  const labels = Object.fromEntries(usualFields.offline.map(({ name, label }) => [name, label]))
  expect(namedFields(labels)).toEqual(Object.values(labels).map((label) => [label, label]))
})

describe('the times of the console', () => {
  it('use the 24-hour clock in every format', () => {
    const now = new Date(2026, 10, 23, 14, 5, 9)
    const midnight = new Date(2026, 10, 23, 0, 5)
    expect([formatTime(now), formatShort(midnight, now)]).toEqual(['14:05', '00:05'])
    expect(formatFull(now)).toBe('23 Nov 2026, 14:05:09')
    expect([formatShort(new Date(2026, 2, 4), now), formatShort(new Date(2025, 2, 4), now)]).toEqual([
      '4 Mar',
      '4 Mar 2025',
    ])
  })
})

it('a number stands with the singular or the plural', () => {
  const texts = [countOf(1, '# rating', '# ratings'), countOf(0, '# rating', '# ratings')]
  expect([...texts, countOf(1_200, '# entry', '# entries')]).toEqual(['1 rating', '0 ratings', '1,200 entries'])
})

it('a number of deliveries stands with the singular or the plural, and says where the service stops counting', () => {
  const texts = [1, 2, 9_999, 10_000].map((count) => countOfDeliveries(count, '# delivery', '# deliveries'))
  expect(texts).toEqual(['1 delivery', '2 deliveries', '9,999 deliveries', '10,000 or more deliveries'])
})

describe('the idempotency key of an operation', () => {
  it('the idempotency key of an operation is reused until the operation finishes', async () => {
    const sent: string[] = []
    const failures = [new ConnectError('lost', Code.Unavailable)]
    const call = addIdempotencyKeys()(async ({ message }) => {
      sent.push((message as unknown as { idempotencyKey: string }).idempotencyKey)
      const failure = failures.pop()
      if (failure) throw failure
      return {} as never
    })
    const method = LeadService.method.retryDeliveryAttempt
    const retry = async (attemptId: string) =>
      call({ stream: false, method, message: create(method.input, { attemptId }) } as never).catch(() => {})
    for (const attemptId of ['a', 'a', 'a', 'b']) await retry(attemptId)
    expect(sent[1]).toBe(sent[0])
    expect(new Set(sent).size).toBe(3)
  })
})
