import { randomUUID } from 'node:crypto'
import { MongoClient } from 'mongodb'
import { expect } from 'vitest'
import { newSite } from '../support/resources.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { bearer, message } from './client.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

/**
 * Tests of contract section 1: causes each error of the table `failures`. `client.fails` compares
 * the response with the table.
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
    const { siteKey } = await newSite(suite().roomy.operator, [one, two])
    const visitor = await stack.newVisitor({ origin: one, siteKey })
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
    const { connectionId, siteKey } = await newSite(suite().roomy.operator, [origin])
    const visitor = await stack.newVisitor({ origin, siteKey })
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
    // Changes the stored operation, so that the first request seems to be still running.
    const mongo = new MongoClient(database.uri)
    const records = mongo.db(database.name).collection('idempotency')
    const runningUntil = new Date(Date.now() + 60_000)
    await records.updateMany({ 'result.sessionId': body.sessionId }, { $set: { runningUntil }, $unset: { result: '' } })
    await mongo.close()
    const answer = await client.fails('OperationInProgress', 'POST', '/sessions', request)
    expect(answer.body.retryAfter).toBe(1)
  })

  rule('E.RateLimited', async () => {
    const { client } = suite().limited
    const visitor = await client.visitor()
    const headers = bearer(visitor)
    await until('a refused request', async () => {
      const answers = await Promise.all(Array.from({ length: 20 }, () => client.call('GET', '/messages', { headers })))
      return answers.some(({ status }) => status === 429)
    })
    // The limit allows two more requests a second, so a single request may be accepted.
    await expect.poll(() => client.fails('RateLimited', 'GET', '/messages', { headers })).toBeDefined()
  })

  rule('E.InternalError', async () => {
    const { client, stack } = suite().roomy
    // The cores reject this gateway's token. The response to a visitor must be a general error that
    // does not mention the token.
    const stranger = await stack.addGateway({ CORE_TOKEN: 'not-a-token-of-any-core' })
    await client.fails('InternalError', 'GET', `/config/${stack.demo.siteKey}`, { via: stranger.url })
  })
}
