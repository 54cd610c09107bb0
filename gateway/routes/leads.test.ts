import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { beforeAll, describe, expect, test } from 'vitest'
import { DeliveryStatus, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { signWorkspaceSession } from '../../test/support/workspace-session.ts'
import { GRANT, SITE } from '../test/test-core.ts'
import { sharedGateway, startTestGateway, type TestGateway } from '../test/test-gateway.ts'

const CREATE = '/api/leads/lead_1/delivery-attempts'
const RETRY = '/api/leads/retries/att_1'
const input = { subscriptionId: 'sub_1', idempotencyKey: 'key-1' }
let session: string

beforeAll(async () => {
  session = await signWorkspaceSession()
})

const start = async (options: Parameters<typeof startTestGateway>[0] = {}) => withPost(await startTestGateway(options))

const withPost = (gateway: TestGateway) => ({
  ...gateway,
  /** Calls the route like a backend, without browser headers. Omits headers that are null. */
  post: (path: string, body: unknown = input, headers: Record<string, string | null> = {}) => {
    const all = { authorization: `Bearer ${session}`, 'content-type': 'application/json', ...headers }
    return fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== null),
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  },
})

/** A gateway for all cases of a table. Its core gets no call. */
const uncalled = sharedGateway()

const created = {
  attemptId: 'att_1',
  deliveryId: 'dlv_1',
  leadId: 'lead_1',
  subscriptionId: 'sub_1',
  attemptNumber: 1,
  status: 'pending',
  responseClass: null,
  responseStatus: null,
  nextRetryAt: null,
  correlationId: 'corr-1',
  createdAt: '2026-01-02T03:04:05.006Z',
  updatedAt: '2026-01-02T03:04:05.060Z',
}

describe('POST /api/leads/{leadId}/delivery-attempts', () => {
  test('calls a core with the operator’s session, and answers 201 with the attempt, and a repeat with 200', async () => {
    const { post, core } = await start()
    const response = await post(CREATE, input, { 'x-correlation-id': 'corr-9' })
    expect([response.status, await response.text()]).toEqual([201, JSON.stringify(created)])
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('x-correlation-id')).toBe('corr-9')
    const [call] = core.calls.filter(({ method }) => method === 'createDeliveryAttempt')
    expect(call?.request).toMatchObject({ leadId: 'lead_1', ...input })
    expect(call?.headers.get('authorization')).toBe(`Bearer ${session}`)
    expect(call?.headers.get('x-correlation-id')).toBe('corr-9')
    const repeat = await post(CREATE, { ...input, idempotencyKey: 'again' })
    expect([repeat.status, await repeat.json()]).toEqual([200, created])
  })

  test('answers with all public fields of a finished attempt', async () => {
    const { post, core } = await start()
    core.attempt = {
      status: DeliveryStatus.RETRY_SCHEDULED,
      responseClass: ResponseClass.RATE_LIMITED,
      responseStatus: 429,
      nextRetryAt: timestampFromMs(Date.UTC(2026, 0, 2, 3, 4, 5)),
    }
    expect(await (await post(CREATE)).json()).toEqual({
      ...created,
      status: 'retry_scheduled',
      responseClass: 'rate_limited',
      responseStatus: 429,
      nextRetryAt: '2026-01-02T03:04:05.000Z',
    })
  })

  test('needs no origin and no version, and sends no CORS headers', async () => {
    const { post, url } = await start()
    const response = await post(CREATE, input, { origin: SITE })
    expect(response.status).toBe(201)
    const preflight = await fetch(`${url}${CREATE}`, {
      method: 'OPTIONS',
      headers: { origin: SITE, 'access-control-request-method': 'POST' },
    })
    for (const each of [response, preflight])
      expect([...each.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  })
})

test('POST /api/leads/retries/{attemptId} answers 201 with the next attempt, and a repeat with 200', async () => {
  const { post, core } = await start()
  const response = await post(RETRY, { idempotencyKey: 'key-2' })
  expect([response.status, await response.json()]).toEqual([201, { ...created, attemptId: 'att_2', attemptNumber: 2 }])
  expect((await post(RETRY, { idempotencyKey: 'again' })).status).toBe(200)
  expect(core.calls.at(-1)?.request).toMatchObject({ attemptId: 'att_1', ofLead: true, idempotencyKey: 'again' })
})

describe.each([
  [CREATE, input, 'createDeliveryAttempt'],
  [RETRY, { idempotencyKey: 'key-1' }, 'retryDeliveryAttempt'],
])('POST %s', (path, body, method) => {
  const part = (name: string) => Buffer.from(name).toString('base64url')

  test.each<[string, () => Promise<string | null> | string | null]>([
    ['no session', () => null],
    ['another scheme', () => 'Basic b3BlcmF0b3I6c2VjcmV0'],
    ['garbage', () => 'Bearer nonsense'],
    ['a token that is no JSON', () => `Bearer ${part('a')}.${part('b')}.${part('c')}`],
    ['a visitor’s grant', () => `Bearer ${GRANT}`],
    [
      'a JWT for visitors',
      async () => `Bearer ${await signWorkspaceSession({ claims: { aud: 'service.widget.public-api' } })}`,
    ],
    ['a service token', async () => `Bearer ${await signWorkspaceSession({ claims: { aud: 'service.core' } })}`],
  ])('answers 401 for %s, without a call to a core', async (_, authorization) => {
    const { post, core } = withPost(await uncalled())
    const response = await post(path, body, { authorization: await authorization() })
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect(await response.json()).toEqual({
      code: 'Unauthenticated',
      retryable: false,
      terminal: false,
      correlationId: response.headers.get('x-correlation-id'),
    })
    expect(core.count(method)).toBe(0)
  })

  test.each([
    ['an unknown field', { ...body, priority: 1 }, { path: '/priority', rule: 'additionalProperties' }],
    ['no key', { ...body, idempotencyKey: undefined }, { path: '/idempotencyKey', rule: 'required' }],
    ['an empty key', { ...body, idempotencyKey: '' }, { path: '/idempotencyKey', rule: 'pattern' }],
    ['an overlong key', { ...body, idempotencyKey: 'k'.repeat(129) }, { path: '/idempotencyKey', rule: 'pattern' }],
    ['a key of other characters', { ...body, idempotencyKey: 'a b' }, { path: '/idempotencyKey', rule: 'pattern' }],
    ['a key that is no text', { ...body, idempotencyKey: 7 }, { path: '/idempotencyKey', rule: 'type' }],
    ['a list', [body], { path: '', rule: 'type' }],
    ['no JSON', '{', { path: '', rule: 'json' }],
  ])('answers 400 to an invalid body: %s', async (_, broken, issue) => {
    const { post, core } = withPost(await uncalled())
    const response = await post(path, broken)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'ValidationFailed', issues: expect.arrayContaining([issue]) })
    expect(core.count(method)).toBe(0)
  })

  test('answers 415 if the body is not JSON, 413 if it is too large, and 400 if the URL has a query', async () => {
    const { post } = await start()
    expect((await post(path, 'a=b', { 'content-type': 'application/x-www-form-urlencoded' })).status).toBe(415)
    expect((await post(path, { ...body, idempotencyKey: 'k'.repeat(70_000) })).status).toBe(413)
    const credential = await post(`${path}?access_token=${session}`, body)
    expect([credential.status, await credential.json()]).toMatchObject([400, { code: 'CredentialInUrl' }])
    expect((await post(`${path}?verbose=1`, body)).status).toBe(400)
  })

  test('answers 405 with an Allow header to other methods', async () => {
    const { url } = await start()
    const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${session}` } })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'OPTIONS, POST'])
    expect((await fetch(`${url}/api/leads/lead_1`)).status).toBe(404)
  })

  test('answers 429 above the rate limit of lead requests per client address', async () => {
    const { post } = await start({ env: { RATE_LIMIT_LEADS_PER_MINUTE: '2' } })
    expect([(await post(path, body)).status, (await post(path, body)).status]).toEqual([201, 201])
    const refused = await post(path, body)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '30'])
    expect(await refused.json()).toMatchObject({ code: 'RateLimited', retryable: true, retryAfter: 30 })
  })

  test('logs no workspace session, lead id, attempt id or idempotency key', async () => {
    const { post, lines, core } = await start()
    await post(path, body)
    core.refuseNext = new ConnectError(`of ${session}`, Code.Internal)
    await post(path, body)
    await post(`${path}?token=${session}`, body)
    expect(lines.length).toBeGreaterThan(2)
    for (const secret of [session, session.split('.')[2]!, 'lead_1', 'att_1', 'key-1'])
      expect(lines.join('\n')).not.toContain(secret)
  })
})
