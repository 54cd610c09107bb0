import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { newSite } from '../support/resources.ts'
import { bearer, message, type Request } from './client.ts'
import { inTime, rule } from './rule.ts'
import { CREATION_REPEAT_SECONDS, type Suite } from './suite.ts'

/** Tests of contract section 1: idempotency. */
export function idempotencyRules(suite: () => Suite): void {
  const create = (clientInstanceId: string) => ({
    publicSiteKey: suite().roomy.stack.demo.siteKey,
    clientInstanceId,
  })

  rule('C1.30', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const [key, renewKey] = [randomUUID(), randomUUID()]
    const { sessionId, renewalToken } = visitor.session
    const operations: [string, Request][] = [
      ['/sessions', { headers: { 'idempotency-key': key }, body: create('same') }],
      ['/messages', { headers: { ...bearer(visitor), 'idempotency-key': key }, body: message(key) }],
      ['/sessions/close', { headers: { ...bearer(visitor), 'idempotency-key': key }, body: { scope: 'panel' } }],
      [
        '/sessions/renew',
        { headers: { ...bearer(visitor), 'idempotency-key': renewKey }, body: { sessionId, renewalToken } },
      ],
    ]
    for (const [path, request] of operations) {
      const first = await client.call('POST', path, request)
      const second = await client.call('POST', path, request)
      expect(first.status, path).toBeLessThan(300)
      expect(first.headers.get('idempotency-replayed'), path).toBeNull()
      expect([second.status, second.body], path).toEqual([first.status, first.body])
      expect(second.headers.get('idempotency-replayed'), path).toBe('true')
    }
  })

  rule('C1.31', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const send = (body: string) =>
      client.call('POST', '/messages', { headers: { ...bearer(visitor), 'idempotency-key': 'op' }, body })
    const first = await send('{"clientOperationId":"op","body":"caf\\u00e9","contentType":"text"}')
    const second = await send('{ "contentType":"text",\n"body":"café", "clientOperationId":"op"}')
    expect(second.body).toEqual(first.body)
    expect(second.headers.get('idempotency-replayed')).toBe('true')
  })

  rule('C1.32', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const headers = { ...bearer(visitor), 'idempotency-key': 'op' }
    const post = (path: string, body: object) => client.call('POST', path, { headers, body })
    const first = await post('/messages', message('op'))
    for (const more of [{ body: 'Other' }, { locale: 'en' }, { pageContext: { url: 'https://a.example/' } }])
      await client.fails('IdempotencyConflict', 'POST', '/messages', { headers, body: message('op', more) })
    expect((await post('/messages', message('op'))).body).toEqual(first.body)
    expect(await visitor.history()).toHaveLength(1)
    expect((await post('/sessions/close', { scope: 'panel' })).status).toBe(200)
    await client.fails('IdempotencyConflict', 'POST', '/sessions/close', { headers, body: { scope: 'continuity' } })
    const key = randomUUID()
    const keyed = (id: string) => ({ headers: { 'idempotency-key': key }, body: create(id) })
    expect((await client.call('POST', '/sessions', keyed('a'))).status).toBe(201)
    await client.fails('IdempotencyConflict', 'POST', '/sessions', keyed('b'))
  })

  rule('C1.33', async () => {
    const { client } = suite().roomy
    const [one, two] = [await client.visitor(), await client.visitor()]
    const messageIds = []
    for (const visitor of [one, two]) {
      const headers = { ...bearer(visitor), 'idempotency-key': 'op' }
      const sent = await client.call('POST', '/messages', { headers, body: message('op') })
      const closed = await client.call('POST', '/sessions/close', { headers, body: { scope: 'panel' } })
      expect([sent.status, closed.status]).toEqual([202, 200])
      for (const answer of [sent, closed]) expect(answer.headers.get('idempotency-replayed')).toBeNull()
      messageIds.push(sent.body.messageId)
    }
    expect(new Set(messageIds).size).toBe(2)
  })

  rule('C1.34', async () => {
    const { client, stack } = suite().roomy
    const other = 'https://key-scope.example'
    const { siteKey } = await newSite(suite().roomy.operator, [other, stack.demo.origin])
    const key = randomUUID()
    const ids = []
    for (const [origin, publicSiteKey] of [
      [stack.demo.origin, stack.demo.siteKey],
      [stack.demo.origin, siteKey],
      [other, siteKey],
    ]) {
      const answer = await client.call('POST', '/sessions', {
        headers: { origin: origin!, 'idempotency-key': key },
        body: { publicSiteKey, clientInstanceId: 'i' },
      })
      expect(answer.status).toBe(201)
      ids.push(answer.body.sessionId)
    }
    expect(new Set(ids).size).toBe(3)
  })

  rule('C1.35', async () => {
    const { client, stack } = suite().roomy
    const request = { headers: { 'idempotency-key': randomUUID() }, body: create('other process') }
    const answers = []
    for (const { url } of stack.gateways) answers.push(await client.call('POST', '/sessions', { ...request, via: url }))
    expect(answers[1]!.body).toEqual(answers[0]!.body)
    expect(answers[1]!.headers.get('idempotency-replayed')).toBe('true')
  })

  rule('C1.38', async () => {
    const { client, stack } = suite().roomy
    const visitor = await client.visitor()
    const { sessionId, renewalToken } = visitor.session
    const key = randomUUID()
    const operations: [string, Request][] = [
      ['/sessions', { headers: { 'idempotency-key': key }, body: create('at once') }],
      ['/messages', { headers: { ...bearer(visitor), 'idempotency-key': key }, body: message(key) }],
      [
        '/sessions/renew',
        { headers: { ...bearer(visitor), 'idempotency-key': key }, body: { sessionId, renewalToken } },
      ],
    ]
    for (const [path, request] of operations) {
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          client.call('POST', path, { ...request, via: stack.gateways[index % 2]!.url }),
        ),
      )
      const done = answers.filter(({ status }) => status < 300)
      for (const { body } of answers.filter(({ status }) => status >= 300))
        expect(body.code).toBe('OperationInProgress')
      expect(done.length).toBeGreaterThan(0)
      for (const { body } of done) expect(body).toEqual(done[0]!.body)
      expect(done.filter(({ headers }) => headers.get('idempotency-replayed') === null)).toHaveLength(1)
    }
  })

  rule('C1.39', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    await client.fails('IdempotencyKeyMismatch', 'POST', '/messages', {
      headers: { ...bearer(visitor), 'idempotency-key': 'another' },
      body: message('op'),
    })
  })

  rule('C1.37', () =>
    inTime(async () => {
      const { client, stack } = suite().short
      const request = {
        headers: { 'idempotency-key': randomUUID(), ...suite().fromAddress(37) },
        body: { publicSiteKey: stack.demo.siteKey, clientInstanceId: 'i' },
      }
      const deadline = Date.now() + CREATION_REPEAT_SECONDS * 1000
      const first = await client.call('POST', '/sessions', request)
      const repeated = await client.call('POST', '/sessions', request)
      if (Date.now() >= deadline) return false
      expect(repeated.body).toEqual(first.body)
      await expect
        .poll(async () => (await client.call('POST', '/sessions', request)).body.sessionId, {
          interval: 250,
          timeout: 15_000,
        })
        .not.toBe(first.body.sessionId)
      return true
    }),
  )
}
