import { randomBytes } from 'node:crypto'
import { PassThrough, Readable } from 'node:stream'
import { Webhook } from 'standardwebhooks'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { createVerifier, type WebhookEvent, type WebhookRequest } from './index.ts'

const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`
const secret = newSecret()
const verify = createVerifier(secret)
const lead = {
  eventType: 'lead.ready-for-delivery',
  id: 'dlv_1',
  contractVersion: '1.0',
  occurredAt: '2026-11-20T12:00:00.000Z',
  data: { reference: 'lead_1', name: 'Zoë' },
}

function headersOf(body: string, { at = new Date(), key = secret } = {}) {
  return {
    'content-type': 'application/json',
    'x-service-webhook-version': '1.0',
    'webhook-id': 'dlv_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(key).sign('dlv_1', at, body),
  }
}
const requestOf = (body: string, headers: Record<string, string> = headersOf(body)) =>
  new Request('http://localhost/', { method: 'POST', headers, body })
const send = (event: unknown) => verify(requestOf(JSON.stringify(event)))
const codeOf = (request: WebhookRequest) => verify(request).catch(({ code, status }) => `${status} ${code}`)

/** Returns the name of a header as many proxies write it, for example `Content-Type`. */
const original = (name: string) => name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase())
/** The request that the README makes of an event of AWS API Gateway. */
const ofGateway = (event: { headers: Record<string, string>; body: string; isBase64Encoded?: boolean }) => ({
  headers: event.headers,
  body: Buffer.from(event.body, event.isBase64Encoded ? 'base64' : 'utf8'),
})

describe('verify', () => {
  const text = JSON.stringify(lead)
  const bytes = Buffer.from(text)
  const headers = headersOf(text)
  const renamed = (rename: (name: string) => string) =>
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [rename(name), value]))
  const severalValues = Object.fromEntries(Object.entries(renamed(original)).map(([name, value]) => [name, [value]]))

  it.each<[string, WebhookRequest]>([
    ['a Fetch request', requestOf(text)],
    ['a request with a buffer', { headers, body: bytes }],
    ['a request with a text', { headers, body: text }],
    ['a request with names in upper case', { headers: renamed((name) => name.toUpperCase()), body: text }],
    ['an event of AWS API Gateway', ofGateway({ headers: renamed(original), body: text })],
    [
      'an event of AWS API Gateway with an encoded body',
      ofGateway({ headers: renamed(original), body: bytes.toString('base64'), isBase64Encoded: true }),
    ],
    ['a request with several values of each header', { headers: severalValues, body: text }],
    ['a request with Fetch headers', { headers: new Headers(renamed(original)), body: text }],
    ['a request with a list of headers', { headers: Object.entries(renamed(original)), body: text }],
    ['a request with a map of headers', { headers: new Map(Object.entries(renamed(original))), body: text }],
    [
      'a stream whose pieces cut a character',
      Object.assign(Readable.from([...bytes].map((each) => Buffer.of(each))), { headers }),
    ],
  ])('returns the event of %s', async (_name, request) => {
    expect(await verify(request)).toEqual(lead)
  })

  it('types the data by the type of the event, and every event in one union', async () => {
    const event = await send(lead)
    if (event.eventType === 'lead.ready-for-delivery') {
      expectTypeOf(event.data.reference).toEqualTypeOf<string>()
      // @ts-expect-error only events of subscriptions have a reason with these values
      expect(event.data.reason === 0).toBe(false)
    }
    if (event.eventType === 'subscription.disabled') expectTypeOf(event.data.reason).toExtend<string>()
    expectTypeOf<'unknown'>().toExtend<WebhookEvent['eventType']>()
  })

  it.each([
    ['an unknown type', { ...lead, eventType: 'lead.sold' }, 'lead.sold'],
    ['a type that is a name of every object', { ...lead, eventType: 'constructor' }, 'constructor'],
    ['the next major version of a known type', { ...lead, contractVersion: '2.0' }, lead.eventType],
  ])('returns an unknown event for %s', async (_name, event, receivedType) => {
    expect(await send(event)).toEqual({ ...event, eventType: 'unknown', receivedType })
  })

  it('accepts new fields and later minor versions', async () => {
    const event = { ...lead, contractVersion: '1.7', priority: 1, data: { ...lead.data, score: '3' } }
    expect(await send(event)).toEqual(event)
  })

  it('accepts one valid signature of several, with one of two secrets', async () => {
    const other = headersOf(text, { key: newSecret() })['webhook-signature']
    const both = { ...headers, 'webhook-signature': `v1a,x ${other} ${headers['webhook-signature']}` }
    expect(await verify(requestOf(text, both))).toEqual(lead)
    expect(await createVerifier(newSecret(), secret)(requestOf(text))).toEqual(lead)
  })

  it.each<[string, WebhookRequest]>([
    ['another secret', requestOf(text, headersOf(text, { key: newSecret() }))],
    ['a time of six minutes ago', requestOf(text, headersOf(text, { at: new Date(Date.now() - 360_000) }))],
    ['a time in six minutes', requestOf(text, headersOf(text, { at: new Date(Date.now() + 360_000) }))],
    ['a time that is no number', requestOf(text, { ...headers, 'webhook-timestamp': 'now' })],
    ['another id', requestOf(text, { ...headers, 'webhook-id': 'dlv_2' })],
    ['a body that lacks its end', requestOf(text.slice(0, -1), headers)],
    ['an empty body', requestOf('', headers)],
    ['a body that is null', { headers, body: null }],
    ['a signature of another scheme', requestOf(text, { ...headers, 'webhook-signature': 'v1a,AAAA' })],
    ['a signature without a value', requestOf(text, { ...headers, 'webhook-signature': 'v1 v1,' })],
    ['no signature', requestOf(text, { ...headers, 'webhook-signature': '' })],
  ])('rejects %s', async (_name, request) => {
    expect(await codeOf(request)).toBe('401 invalid_signature')
  })

  it.each<[string, string, WebhookRequest]>([
    [
      '415 unsupported_media_type',
      'another media type',
      requestOf(text, { ...headers, 'content-type': 'application/jsonx' }),
    ],
    ['400 unsupported_version', 'another version', requestOf(text, { ...headers, 'x-service-webhook-version': '2.0' })],
    ['413 body_too_large', 'a large body', requestOf('x'.repeat(65_537), headers)],
    [
      '413 body_too_large',
      'a large length in upper case',
      { headers: { ...headers, 'CONTENT-LENGTH': '65537' }, body: '' },
    ],
    ['413 body_too_large', 'a large length', { headers: { ...headers, 'content-length': '65537' }, body: '' }],
    ['413 body_too_large', 'a body without an end', Object.assign(Readable.from(endless()), { headers })],
  ])('fails with %s for %s', async (code, _name, request) => {
    expect(await codeOf(request)).toBe(code)
  })

  it.each(['', 'null', '[]', '{}', '{', JSON.stringify({ ...lead, data: [] }), JSON.stringify({ ...lead, id: 7 })])(
    'fails with invalid_body for the signed body %j',
    async (body) => {
      expect(await codeOf(requestOf(body, headersOf(body)))).toBe('400 invalid_body')
    },
  )

  it('accepts a body of 64 KiB', async () => {
    const long = (size: number) => JSON.stringify({ ...lead, data: { reference: 'x'.repeat(size) } })
    const body = long(65_536 - long(0).length)
    expect(await verify(requestOf(body))).toMatchObject({ id: 'dlv_1' })
  })

  it('fails with body_incomplete if the connection ends within the body', async () => {
    const stream = new PassThrough()
    stream.write('{"half":')
    const verifying = codeOf(Object.assign(stream, { headers }))
    stream.destroy(new Error('aborted'))
    expect(await verifying).toBe('400 body_incomplete')
  })

  it('throws a TypeError for a body that was parsed or read before', async () => {
    const read = requestOf(text)
    await read.text()
    const stream = Object.assign(Readable.from([bytes]), { headers })
    await stream.toArray()
    for (const request of [{ headers, body: lead }, { headers }, read, stream])
      await expect(verify(request)).rejects.toThrow(TypeError)
  })
})

it.each([[], [undefined], [''], ['whsec_'], ['whsec_c2hvcnQ='], ['secret'], [secret, undefined]])(
  'a verifier is not created for the secrets %j',
  (...secrets) => {
    expect(() => createVerifier(...secrets)).toThrow('whsec_')
  },
)

function* endless() {
  for (;;) yield Buffer.alloc(16_384, 'x')
}
