import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, test } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { message, startTestGateway } from '../test/test-gateway.ts'

const create = { publicSiteKey: 'pk_demo', clientInstanceId: 'browser-1' }

/** A long timeout, because other tests may use the CPU. */
const patience = { timeout: 30_000 }

describe('configuration', () => {
  test('has exactly the fields of the contract, is cacheable, and answers 304 if unchanged', async () => {
    const { call } = await startTestGateway()
    const response = await call('GET', '/config/pk_demo', { headers: { authorization: null } })
    expect(response.status).toBe(200)
    expect(response.headers.get('cache-control')).toBe('public, max-age=60')
    expect(await response.json()).toEqual({
      contract: 'service.widget.public-api',
      contractVersion: '1.0',
      publicSiteKey: 'pk_demo',
      locale: { default: 'en', supported: ['en', 'sv'] },
      appearance: {
        title: 'Shop',
        greeting: 'Hello',
        accentColor: '#2f6f4f',
        position: 'right',
        translations: { de: { title: 'Laden' }, 'de-AT': { greeting: 'Servus' } },
      },
      capabilities: {
        identity: true,
        typing: true,
        pageContext: true,
        navigation: false,
        screenshots: false,
        stopAnswer: false,
        preChatForm: false,
        offlineForm: false,
        messageRetryRoute: false,
        presence: false,
        receipts: false,
        rating: false,
      },
      forms: {},
      consent: { required: false },
      availability: { online: true, nextChangeAt: '2026-11-23T16:00:00.000Z' },
      compatibility: { informational: 'ignore', security: 'stop', command: 'decline' },
      limits: {
        bodyMaxLength: 4000,
        pageContextMaxBytes: 4096,
        historyPageMax: 100,
        screenshotMaxBytes: 1,
        outboxMax: 50,
      },
      realtime: { heartbeatSeconds: 15, reconnectMinMs: 500, reconnectMaxMs: 20_000 },
    })
    const etag = response.headers.get('etag')!
    const again = await call('GET', '/config/pk_demo', { headers: { 'if-none-match': `"other", W/${etag}` } })
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag])
    expect(again.headers.get('access-control-allow-origin')).not.toBeNull()
  })

  test('answers 404 with `terminal: true` for an unknown installation', async () => {
    const { call } = await startTestGateway()
    const response = await call('GET', '/config/pk_other')
    expect([response.status, await response.json()]).toMatchObject([
      404,
      { code: 'InstallationNotFound', terminal: true },
    ])
  })
})

describe('sessions', () => {
  test('are created with status 201, session content and `Cache-Control: no-store`', async () => {
    const { call, core } = await startTestGateway()
    const response = await call('POST', '/sessions', { headers: { authorization: null }, body: create })
    expect(response.status).toBe(201)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('idempotency-replayed')).toBeNull()
    expect(await response.json()).toEqual({
      sessionId: 'ses_grant-1',
      conversationId: 'cnv_1',
      accessGrant: 'grant-1',
      expiresAt: '2030-01-01T00:00:00.000Z',
      renewAfter: '2029-12-31T23:55:00.000Z',
      renewableUntil: '2030-01-01T02:00:00.000Z',
      renewalToken: 'renewal-1',
      replay: { state: 'ready', epoch: 'e1', lastSequence: 7, oldestSequence: 0 },
      continuity: { state: 'new' },
      identity: { state: 'anonymous' },
    })
    expect(core.calls.at(-1)?.request).toMatchObject({
      ...create,
      origin: 'https://shop.example',
      idempotencyKey: 'op-1',
    })
  })

  test('get Idempotency-Replayed if the core repeats an earlier answer, and so do messages', async () => {
    const { call } = await startTestGateway()
    const headers = { 'idempotency-key': 'again' }
    expect((await call('POST', '/sessions', { headers, body: create })).headers.get('idempotency-replayed')).toBe(
      'true',
    )
    const body = message('again')
    expect((await call('POST', '/messages', { headers, body })).headers.get('idempotency-replayed')).toBe('true')
  })

  test('can be renewed and closed', async () => {
    const { call, core } = await startTestGateway()
    const body = { sessionId: 'ses_grant-1', renewalToken: 'r', lastSeenEventId: 'e1-4' }
    expect((await call('POST', '/sessions/renew', { body })).status).toBe(200)
    expect(core.calls.at(-1)?.request).toMatchObject({ ...body, credentials: { accessGrant: 'grant-1' } })
    const closed = await call('POST', '/sessions/close', { body: { scope: 'continuity' } })
    expect(await closed.json()).toEqual({ sessionId: 'ses_grant-1', state: 'closed' })
    expect(closed.headers.get('cache-control')).toBe('no-store')
  })
})

describe('messages', () => {
  test('are accepted with 202', async () => {
    const { call } = await startTestGateway()
    const response = await call('POST', '/messages', { body: message('op-1', { locale: 'sv-SE' }) })
    expect(response.status).toBe(202)
    expect(await response.json()).toEqual({
      clientOperationId: 'op-1',
      messageId: 'msg_op-1',
      sessionId: 'ses_grant-1',
      conversationId: 'cnv_1',
      sequence: 1,
      state: 'queued',
      acceptedAt: '2026-01-02T03:04:05.006Z',
    })
  })

  test('are batched if they arrive concurrently, and each gets its own answer', async () => {
    const { call, core, waitingSends } = await startTestGateway({ env: { RATE_LIMIT_FACTOR: '1000' } })
    core.grants.set('grant-2', 'ok')
    await call('GET', '/messages')
    await call('GET', '/messages', { headers: { authorization: 'Bearer grant-2' } })
    core.grants.set('grant-2', 'VisitorBanned')
    const release = Promise.withResolvers<void>()
    const answer = core.onSend
    core.onSend = async (request) => {
      await release.promise
      return answer(request)
    }
    const sends = Array.from({ length: 200 }, (_, index) => {
      const id = `op-${index}`
      const authorization = index % 10 === 3 ? 'Bearer grant-2' : 'Bearer grant-1'
      return call('POST', '/messages', { headers: { 'idempotency-key': id, authorization }, body: message(id) })
    })
    await expect.poll(() => core.count('sendVisitorMessages'), patience).toBe(2)
    const underWay = core.calls.flatMap(({ request }) => (request as { messages?: unknown[] })?.messages ?? []).length
    await expect.poll(waitingSends, patience).toBe(sends.length - underWay)
    release.resolve()
    for (const [index, sent] of (await Promise.all(sends)).entries()) {
      const refused = index % 10 === 3
      expect(sent.status).toBe(refused ? 403 : 202)
      expect(await sent.json()).toMatchObject(refused ? { code: 'VisitorBanned' } : { messageId: `msg_op-${index}` })
    }
    expect(core.count('sendVisitorMessages')).toBeLessThan(10)
  })

  test('all get a retryable 503 if the call of their batch fails', async () => {
    const { call, core } = await startTestGateway()
    await call('GET', '/messages')
    core.refuseNext = new ConnectError('broken', Code.Internal)
    const response = await call('POST', '/messages', { body: message() })
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toBe('1')
    expect(await response.json()).toMatchObject({ code: 'ServiceUnavailable', retryable: true, retryAfter: 1 })
  })

  test('get 503 at once if the queue is full', async () => {
    const { call, core } = await startTestGateway({ env: { SEND_QUEUE_MAX: '1' } })
    await call('GET', '/messages')
    const release = Promise.withResolvers<void>()
    const answer = core.onSend
    core.onSend = async (request) => {
      await release.promise
      return answer(request)
    }
    const send = (id: string) => call('POST', '/messages', { headers: { 'idempotency-key': id }, body: message(id) })
    const first = send('op-1')
    await expect.poll(() => core.count('sendVisitorMessages')).toBe(1)
    const second = send('op-2')
    await expect.poll(() => core.count('sendVisitorMessages')).toBe(2)
    const others = [send('op-3'), send('op-4')]
    expect((await Promise.race(others)).status).toBe(503)
    release.resolve()
    const statuses = await Promise.all([first, second, ...others].map(async (response) => (await response).status))
    expect(statuses.sort()).toEqual([202, 202, 202, 503])
  })

  itLong('get 503 and are not sent to a core if they wait too long in the queue', async () => {
    const env = { CORE_DEADLINE_MS: '2000' }
    const { call, core, clock, waitingSends } = await startTestGateway({ env })
    const { promise: never } = Promise.withResolvers<never>()
    core.onSend = () => never
    const send = (id: string) =>
      call('POST', '/messages', { body: message(id), headers: { 'idempotency-key': id } }).then(({ status }) => status)
    const first = send('op-1')
    await expect.poll(() => core.count('sendVisitorMessages')).toBe(1)
    const second = send('op-2')
    await expect.poll(() => core.count('sendVisitorMessages')).toBe(2)
    const late = send('op-3')
    await expect.poll(waitingSends, patience).toBe(1)
    clock.advance(2_000)
    expect([await first, await second, await late]).toEqual([503, 503, 503])
    expect(core.count('sendVisitorMessages')).toBe(2)
  })

  test('omit unset fields in the history', async () => {
    const { call } = await startTestGateway()
    expect(await (await call('GET', '/messages')).json()).toEqual({
      messages: [
        {
          messageId: 'msg_1',
          conversationId: 'cnv_1',
          sequence: 4,
          author: { kind: 'agent', displayName: 'Ada' },
          body: 'Hi',
          contentType: 'text',
          state: 'sent',
          createdAt: '2026-01-02T03:04:05.006Z',
        },
      ],
      hasMore: false,
      lastSequence: 9,
      oldestSequence: 1,
    })
  })
})
