import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { bodySignature, standardSignature, webhookHeaders } from '../../contract/webhook-headers.ts'
import { leadContent, bodyOf as webhookBody } from './intake.ts'
import { liveSecrets, maskedSecret, newWebhookSecret, rotatedSecrets } from './webhook-requests.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const secretBox = { seal: (text: string) => `sealed ${text}` }
const fresh = () => newWebhookSecret(secretBox, new Date())

describe('the signature of the body', () => {
  it("the signature of the body matches GitHub's published example", () => {
    expect(bodySignature("It's a Secret to Everybody", bytes('Hello, World!'))).toBe(
      '757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
    )
  })

  it('the signature of the body uses the whole secret as its key, including the `whsec_` prefix', () => {
    const { secret } = fresh()
    const body = bytes('{"a":"ä"}')
    const { 'x-service-webhook-signature': header } = headersOf(body, [secret])
    expect(header).toBe(`sha256=${createHmac('sha256', Buffer.from(secret, 'utf8')).update(body).digest('hex')}`)
  })
})

const headersOf = (body: Uint8Array, all: [string, ...string[]], at = Date.now()) =>
  webhookHeaders({ deliveryId: 'dlv_1', correlationId: 'cor', body, secrets: { active: all[0], all }, at })

describe('the Standard Webhooks signature', () => {
  it('the Standard Webhooks signature matches the published example', () => {
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
    const signature = standardSignature(
      secret,
      'msg_p5jXN8AQM9LWM0D4loKWxJek',
      1614265330,
      bytes('{"test": 2432232314}'),
    )
    expect(signature).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  })

  it('the Standard Webhooks signature is accepted by the standardwebhooks library under each live secret', () => {
    const secrets: [string, string] = [fresh().secret, fresh().secret]
    const body = bytes(JSON.stringify({ name: 'Zoë — 😀' }))
    const headers = headersOf(body, secrets)
    for (const secret of secrets) {
      expect(new Webhook(secret).verify(Buffer.from(body).toString(), headers)).toEqual({ name: 'Zoë — 😀' })
    }
  })

  it('the Standard Webhooks signature is rejected with another body, another id, another secret or an old timestamp', () => {
    const { secret } = fresh()
    const body = bytes('{"a":1}')
    const headers = headersOf(body, [secret])
    const library = new Webhook(secret)
    expect(() => library.verify('{"a":2}', headers)).toThrow()
    expect(() => library.verify('{"a":1}', { ...headers, 'webhook-id': 'dlv_2' })).toThrow()
    expect(() => new Webhook(fresh().secret).verify('{"a":1}', headers)).toThrow()
    expect(() => library.verify('{"a":1}', headersOf(body, [secret], Date.now() - 600_000))).toThrow()
  })
})

it('the headers of a webhook match the specification', () => {
  const { secret } = fresh()
  expect(headersOf(bytes('{}'), [secret], 1_700_000_000_999)).toEqual({
    'content-type': 'application/json',
    'user-agent': 'Service-Webhooks/1.0',
    'x-correlation-id': 'cor',
    'x-service-webhook-version': '1.0',
    'x-service-webhook-id': 'dlv_1',
    'x-service-webhook-signature': expect.stringMatching(/^sha256=[0-9a-f]{64}$/),
    'webhook-id': 'dlv_1',
    'webhook-timestamp': '1700000000',
    'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
  })
})

describe('the body', () => {
  const occurredAt = new Date('2030-01-02T03:04:05.678Z')
  const bodyOf = (fields: Record<string, string>, mappedFields: string[]) =>
    Buffer.from(webhookBody(leadContent({ leadId: 'lead_1', fields }, { mappedFields }), 'dlv_1', occurredAt))

  it('the body of a webhook contains the reference and the mapped fields, and no other data of the lead', () => {
    expect(bodyOf({ name: 'Mia', mail: 'mia@example.org' }, ['name', 'phone']).toString()).toBe(
      '{"eventType":"lead.ready-for-delivery","id":"dlv_1","contractVersion":"1.0",' +
        '"occurredAt":"2030-01-02T03:04:05.678Z","data":{"reference":"lead_1","name":"Mia"}}',
    )
    expect(JSON.parse(bodyOf({ name: 'Mia' }, []).toString()).data).toEqual({ reference: 'lead_1' })
  })

  it('the body of a webhook contains no inherited properties, even for fields with names such as `constructor`', () => {
    expect(JSON.parse(bodyOf({}, ['constructor', '__proto__', 'toString']).toString()).data).toEqual({
      reference: 'lead_1',
    })
    const fields = JSON.parse('{"__proto__":"x"}')
    expect(bodyOf(fields, ['__proto__']).toString()).toContain('"__proto__":"x"')
  })
})

describe('webhook secrets', () => {
  it('webhook secrets consist of `whsec_` and 32 bytes, and their masked form shows four of the random characters', () => {
    const { secret, kept } = fresh()
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(maskedSecret(kept)).toBe(`${secret.slice(0, 10)}••••`)
  })

  it('all live webhook secrets sign each request until the overlap of the older secrets ends', () => {
    const start = Date.now()
    const at = (ms: number) => new Date(start + ms)
    const kept = (ms: number) => newWebhookSecret(secretBox, at(ms)).kept
    const [first, second] = [kept(0), kept(1000)]
    const rotated = rotatedSecrets([first], second, { seen: [first], overlapSeconds: 4 })
    expect(liveSecrets(rotated, at(4999)).map(({ secretId }) => secretId)).toEqual([second.secretId, first.secretId])
    expect(liveSecrets(rotated, at(5000))).toEqual([{ ...second, pending: true }])
    expect(rotatedSecrets(rotated, kept(6000), { seen: rotated, overlapSeconds: 3 })).toHaveLength(2)
    expect(rotatedSecrets([first], second, { seen: [first], overlapSeconds: 0 })).toEqual([
      { ...second, pending: true },
    ])
  })

  it('webhook secrets of a concurrent rotation stay valid for a day, even without an overlap', () => {
    const start = Date.now()
    const [first, second, third] = [0, 1, 2].map((ms) => newWebhookSecret(secretBox, new Date(start + ms)).kept)
    const rotated = rotatedSecrets([second!, first!], third!, { seen: [first!], overlapSeconds: 0 })
    expect(rotated).toEqual([
      { ...third, pending: true },
      { ...second, expiresAt: new Date(start + 2 + 86_400_000) },
    ])
  })

  it('webhook secrets cannot be rotated if more than ten older secrets would stay valid', () => {
    const start = Date.now()
    const kept = (ms: number) => newWebhookSecret(secretBox, new Date(start + ms)).kept
    let many = [kept(0)]
    const rotate = (ms: number) => rotatedSecrets(many, kept(ms), { seen: many, overlapSeconds: 100 })
    for (let turn = 1; turn <= 10; turn += 1) many = rotate(turn)
    expect(many.filter(({ expiresAt }) => expiresAt === undefined)).toHaveLength(1)
    expect(() => rotate(11)).toThrow(expect.objectContaining({ retryAfter: 100, message: 'RateLimited' }))
    many = rotate(100_001)
    expect(many).toHaveLength(11)
  })
})
