import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { expect } from 'vitest'
import { freePort, startProcess } from '../support/processes.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor } from '../support/visitor.ts'
import { bearer, message } from './client.ts'
import { rule } from './rule.ts'
import { newSite, type Suite } from './suite.ts'

/**
 * Section 1: provokes each failure of the table. `client.fails` checks the answer against its row.
 */
export function failureRules(suite: () => Suite, database: TestDatabase): void {
  const simple: [code: string, method: string, path: string, request?: object][] = [
    ['ValidationFailed', 'POST', '/sessions', { body: {} }],
    ['WidgetVersionUnsupported', 'GET', '/messages', { headers: { 'x-service-widget-version': '1.1' } }],
    ['CredentialInUrl', 'GET', '/events?access_token=x'],
    ['IdempotencyKeyInvalid', 'POST', '/sessions', { headers: { 'idempotency-key': null }, body: {} }],
    ['GrantMissing', 'GET', '/events'],
    ['GrantInvalid', 'GET', '/events', { headers: { authorization: 'Bearer a.b.c' } }],
    ['OriginNotAllowed', 'POST', '/sessions', { headers: { origin: null }, body: {} }],
    ['InstallationNotFound', 'GET', '/config/pk_nobody'],
    ['NotFound', 'GET', '/nowhere'],
    ['PayloadTooLarge', 'POST', '/sessions', { body: 'x'.repeat(70_000) }],
    ['UnsupportedMediaType', 'POST', '/sessions', { headers: { 'content-type': 'text/plain' }, body: '{}' }],
  ]
  for (const [code, method, path, request] of simple) {
    rule(`E.${code}`, async () => {
      await suite().roomy.client.fails(code, method, path, request)
    })
  }

  rule('E.MethodNotAllowed', async () => {
    const answer = await suite().roomy.client.fails('MethodNotAllowed', 'PUT', '/messages', { body: '{}' })
    expect(answer.headers.get('allow')?.split(', ')).toEqual(expect.arrayContaining(['GET', 'POST']))
  })

  rule('E.IdempotencyKeyMismatch', async () => {
    const { client } = suite().roomy
    const headers = bearer(await client.visitor())
    await client.fails('IdempotencyKeyMismatch', 'POST', '/messages', { headers, body: message('op') })
  })

  rule('E.IdempotencyConflict', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const headers = { ...bearer(visitor), 'idempotency-key': 'op' }
    await client.call('POST', '/messages', { headers, body: message('op') })
    await client.fails('IdempotencyConflict', 'POST', '/messages', { headers, body: message('op', { body: 'x' }) })
  })

  rule('E.SessionClosed', async () => {
    const { client } = suite().roomy
    const headers = bearer(await client.visitor())
    await client.call('POST', '/sessions/close', { headers, body: { scope: 'continuity' } })
    await client.fails('SessionClosed', 'GET', '/messages', { headers })
  })

  rule('E.OriginMismatch', async () => {
    const { client, stack } = suite().roomy
    const [one, two] = ['https://one.mismatch.example', 'https://two.mismatch.example']
    const { siteKey } = await newSite(suite().roomy, [one, two])
    const visitor = await startVisitor({ gatewayUrl: stack.gateways[0]!.url, origin: one, siteKey })
    await client.fails('OriginMismatch', 'GET', '/messages', { headers: { ...bearer(visitor), origin: two } })
  })

  rule('E.SessionRevoked', async () => {
    const { client, operator } = suite().roomy
    const visitor = await client.visitor()
    await operator.sessions.revokeSession({ sessionId: visitor.session.sessionId })
    await client.fails('SessionRevoked', 'GET', '/messages', { headers: bearer(visitor) })
  })

  rule('E.VisitorBanned', async () => {
    const { client, operator, stack } = suite().roomy
    const clientInstanceId = randomUUID()
    const create = { body: { publicSiteKey: stack.demo.siteKey, clientInstanceId } }
    const { body } = await client.call('POST', '/sessions', create)
    await operator.sessions.banVisitor({ sessionId: body.sessionId, reason: 'spam' })
    const headers = { authorization: `Bearer ${body.accessGrant}` }
    await client.fails('VisitorBanned', 'GET', '/messages', { headers })
    await client.fails('VisitorBanned', 'POST', '/sessions', create)
  })

  rule('E.ConnectionDisabled', async () => {
    const { client, operator, stack } = suite().roomy
    const origin = 'https://disabled.example'
    const { connectionId, siteKey } = await newSite(suite().roomy, [origin])
    const visitor = await startVisitor({ gatewayUrl: stack.gateways[0]!.url, origin, siteKey })
    await operator.workspaces.setConnectionStatus({ connectionId, status: 2 })
    await client.fails('ConnectionDisabled', 'GET', '/messages', { headers: { ...bearer(visitor), origin } })
    await client.fails('ConnectionDisabled', 'GET', `/config/${siteKey}`, { headers: { origin } })
    const body = { publicSiteKey: siteKey, clientInstanceId: 'i' }
    await client.fails('ConnectionDisabled', 'POST', '/sessions', { headers: { origin }, body })
  })

  rule('E.OperationInProgress', async () => {
    const { client, stack } = suite().roomy
    const request = {
      headers: { 'idempotency-key': randomUUID() },
      body: { publicSiteKey: stack.demo.siteKey, clientInstanceId: 'i' },
    }
    const { body } = await client.call('POST', '/sessions', request)
    // Makes the first request look unfinished.
    const mongo = new MongoClient(database.uri)
    const records = mongo.db(database.name).collection('idempotency')
    const runningUntil = new Date(Date.now() + 60_000)
    await records.updateMany({ 'result.sessionId': body.sessionId }, { $set: { runningUntil }, $unset: { result: '' } })
    await mongo.close()
    const answer = await client.fails('OperationInProgress', 'POST', '/sessions', request)
    expect(answer.body.retryAfter).toBe(1)
  })

  rule('E.RateLimited', async () => {
    const { client, stack } = suite().short
    const headers = { 'x-forwarded-for': '192.0.2.99' }
    const path = `/config/${stack.demo.siteKey}`
    await Promise.all(Array.from({ length: 400 }, () => client.call('GET', path, { headers })))
    // The bucket gains four tokens a second, so one request after the burst may pass.
    await until('a refused request', () =>
      client.fails('RateLimited', 'GET', path, { headers }).then(
        () => true,
        () => false,
      ),
    )
  })

  rule('E.InternalError', async () => {
    const { client, stack } = suite().roomy
    // The cores reject this gateway's token. The answer must not reveal that to a visitor.
    const dataDir = await mkdtemp(join(tmpdir(), 'service-stranger-'))
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const stranger = await startProcess({
      entry: 'gateway/main.ts',
      name: 'a gateway with a wrong token',
      env: {
        DATA_DIR: dataDir,
        GATEWAY_PORT: String(port),
        CORE_URLS: stack.cores[0]!.url,
        CORE_TOKEN: 'not-a-token-of-any-core',
        LOG_LEVEL: 'silent',
      },
      readyUrl: `${url}/livez`,
    })
    await client.fails('InternalError', 'GET', `/config/${stack.demo.siteKey}`, { via: url })
    await stranger.stop()
    await rm(dataDir, { recursive: true })
  })

  rule('E.ServiceUnavailable', async () => {
    const { client, stack } = suite().short
    const visitor = await client.visitor()
    await stack.cores[0]!.kill()
    const headers = bearer(visitor)
    await client.fails('ServiceUnavailable', 'POST', '/messages', {
      headers: { ...headers, 'idempotency-key': 'op' },
      body: message('op'),
    })
    await client.fails('ServiceUnavailable', 'GET', '/messages', { headers })
    await stack.cores[0]!.start()
    await until(
      'the gateway to be back',
      async () => (await client.call('GET', `/config/${stack.demo.siteKey}`)).status === 200,
    )
  })
}
