import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { until } from '../support/until.ts'
import { bearer, message } from './client.ts'
import { sendAgentMessages } from './replay.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

/** Tests of contract section 3: the routes. */
export function routeRules(suite: () => Suite): void {
  rule('C3.1', async () => {
    const { client, stack } = suite().roomy
    const path = `/config/${stack.demo.siteKey}`
    const { status, headers, body, text } = await client.call('GET', path)
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('public, max-age=60')
    expect(Object.keys(body).sort()).toEqual(
      'appearance availability capabilities compatibility consent contract contractVersion forms limits locale publicSiteKey realtime'.split(
        ' ',
      ),
    )
    expect(body).toMatchObject({ contract: 'service.widget.public-api', contractVersion: '1.0' })
    expect(Object.keys(body.capabilities).sort()).toEqual(
      'identity messageRetryRoute navigation offlineForm pageContext preChatForm presence rating receipts screenshots stopAnswer typing'.split(
        ' ',
      ),
    )
    expect(text).not.toMatch(/ws_|con_|ses_|cnv_/)
    const etag = headers.get('etag')
    expect(etag).toMatch(/^"[^"]+"$/)
    const again = await client.call('GET', path, { headers: { 'if-none-match': etag } })
    expect([again.status, again.text]).toEqual([304, ''])
  })

  rule('C3.2', async () => {
    const { client, stack } = suite().roomy
    const created = await client.call('POST', '/sessions', {
      body: {
        publicSiteKey: stack.demo.siteKey,
        clientInstanceId: randomUUID(),
        locale: 'de-AT',
        pageContext: {
          url: 'https://shop.example/?q=1#f',
          title: 'Shop',
          referrer: '',
          viewport: { width: 1, height: 2 },
        },
      },
    })
    expect(created.status).toBe(201)
    expect(created.headers.get('cache-control')).toBe('no-store')
    expect(created.headers.get('set-cookie')).toBeNull()
  })

  rule('C3.4', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const { sessionId, conversationId } = visitor.session
    const answer = await client.call('POST', '/messages', {
      headers: { ...bearer(visitor), 'idempotency-key': 'op' },
      body: message('op', { locale: 'sv' }),
    })
    expect(answer.status).toBe(202)
    expect(answer.body).toEqual({
      clientOperationId: 'op',
      messageId: expect.stringMatching(/^msg_[A-Za-z0-9]{20,}$/),
      sessionId,
      conversationId,
      sequence: 1,
      state: 'queued',
      acceptedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
  })

  rule('C3.5', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const send = (body: unknown) => {
      const id = randomUUID()
      const json = JSON.stringify(message(id, { body }))
      return client.call('POST', '/messages', { headers: { ...bearer(visitor), 'idempotency-key': id }, body: json })
    }
    const good = ['x', 'x'.repeat(4000), 'a\tb\nc', ' x ', '😀'.repeat(4000), '\u202e\u0301', 'a\r\nb\rc']
    for (const each of good) expect((await send(each)).status, JSON.stringify(each).slice(0, 20)).toBe(202)
    for (const bad of [
      '',
      ' ',
      '\n\t ',
      'x'.repeat(4001),
      'a\u0000',
      '😀'.repeat(4001),
      '\r\n',
      'a\u007f',
      'a\u0086',
      '\u2028',
      '\ud800',
      7,
      null,
    ]) {
      const { status, body } = await send(bad)
      expect([status, body.code], JSON.stringify(bad).slice(0, 20)).toEqual([400, 'ValidationFailed'])
      expect(body.issues[0].path).toBe('/body')
    }
    expect((await visitor.history()).map(({ body }) => body)).toEqual([...good.slice(0, -1), 'a\nb\nc'])
  })

  rule('C3.15', async () => {
    const { client, operator } = suite().roomy
    const visitor = await client.visitor()
    const { conversationId } = visitor.session
    const headers = { ...bearer(visitor), 'idempotency-key': 'op' }
    const first = await client.call('POST', '/messages', { headers, body: message('op', { body: 'a\r\nb\v' }) })
    const again = await client.call('POST', '/messages', { headers, body: message('op', { body: 'a\nb\n' }) })
    expect([again.status, again.body]).toEqual([202, first.body])
    await operator.messaging.sendAgentMessage({ conversationId, clientOperationId: 'a', body: 'c\r\nd\u2028' })
    expect((await visitor.history()).map(({ body }) => body)).toEqual(['a\nb\n', 'c\nd\n'])
  })

  rule('C3.6', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    await sendAgentMessages(suite(), visitor, 52)
    const page = (query: string) => client.call('GET', `/messages${query}`, { headers: bearer(visitor) })
    const sequences = ({ body }: { body: { messages: { sequence: number }[] } }) =>
      body.messages.map(({ sequence }) => sequence)
    const first = await page('')
    expect(sequences(first)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1))
    expect(first.body).toMatchObject({ hasMore: true, lastSequence: 52, oldestSequence: 1 })
    const rest = await page('?afterSequence=50')
    expect(sequences(rest)).toEqual([51, 52])
    expect(rest.body.hasMore).toBe(false)
    expect(sequences(await page('?limit=1'))).toEqual([1])
    expect(sequences(await page('?limit=100'))).toHaveLength(52)
    expect(sequences(await page('?afterSequence=52'))).toEqual([])
    for (const bad of [
      'limit=0',
      'limit=101',
      'limit=x',
      'limit=',
      'limit=1.5',
      'limit=-1',
      'limit=1&limit=2',
      'afterSequence=-1',
    ])
      expect((await page(`?${bad}`)).body.code, bad).toBe('ValidationFailed')

    const before = await page('?beforeSequence=51&limit=10')
    expect(sequences(before)).toEqual([41, 42, 43, 44, 45, 46, 47, 48, 49, 50])
    expect(before.body.hasMore).toBe(true)
  })

  rule('C3.7', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    for (let index = 1; index <= 5; index++) await visitor.send(`message ${index}`)
    const headers = bearer(visitor)
    const { body } = await client.call('GET', '/messages?beforeSequence=4&limit=2', { headers })
    expect(body.messages.map(({ sequence }: { sequence: number }) => sequence)).toEqual([2, 3])
    expect(body.hasMore).toBe(true)
    const first = await client.call('GET', '/messages?beforeSequence=2', { headers })
    expect(first.body).toMatchObject({ messages: [{ sequence: 1 }], hasMore: false })
    await client.fails('ValidationFailed', 'GET', '/messages?beforeSequence=4&afterSequence=1', { headers })
  })

  rule('C3.8', async () => {
    const { client, operator } = suite().roomy
    const visitor = await client.visitor()
    const { sessionId, conversationId } = visitor.session
    await client.call('POST', '/messages', {
      headers: { ...bearer(visitor), 'idempotency-key': 'op' },
      body: message('op', { locale: 'sv' }),
    })
    await operator.messaging.sendAgentMessage({
      conversationId,
      clientOperationId: 'a',
      body: 'Hi',
      agent: { displayName: 'Ada', avatarUrl: 'https://a.example/a.png' },
    })
    const [own, theirs] = await visitor.history()
    const always = { messageId: expect.any(String), conversationId, contentType: 'text', createdAt: expect.any(String) }
    expect(own).toEqual({
      ...always,
      clientOperationId: 'op',
      sessionId,
      sequence: 1,
      author: { kind: 'visitor' },
      body: 'Hello',
      locale: 'sv',
      state: expect.any(String),
    })
    expect(theirs).toEqual({
      ...always,
      sequence: 2,
      author: { kind: 'agent', displayName: 'Ada', avatarUrl: 'https://a.example/a.png' },
      body: 'Hi',
      state: expect.any(String),
    })
  })

  rule('C3.9', async () => {
    const { client, stack } = suite().roomy
    const visitor = await client.visitor()
    const stream = await visitor.openStream({ after: 0, via: stack.gateways[1]!.url })
    const { body } = await visitor.send('one')
    await until('the event', () => stream.events[0])
    const [kept] = await visitor.history()
    const { messageId, sequence, clientOperationId, conversationId, sessionId } = body
    expect(kept).toMatchObject({ messageId, sequence, clientOperationId, conversationId, sessionId })
    expect(stream.events[0]).toMatchObject({ sequence, type: 'message.accepted' })
    expect(stream.events[0]!.data.message).toEqual(kept)
    await visitor.send('two')
    expect((await visitor.history())[0]).toEqual(kept)
    stream.close()
  })

  rule('C3.12', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    for (const path of ['/forms/pre-chat', '/forms/offline', '/messages/op/retry']) {
      const { status, body } = await client.call('POST', path, { headers: bearer(visitor), body: { fields: {} } })
      expect([status, ['NotFound', 'RouteNotAdvertised'].includes(body.code)], path).toEqual([404, true])
    }
  })

  rule('C3.13', async () => {
    const { client, operator, stack } = suite().roomy
    const visitor = await client.visitor()
    const { conversationId } = visitor.session
    const writes = Array.from({ length: 30 }, (_, index) =>
      index % 2 === 0
        ? visitor.send(`visitor ${index}`, { via: stack.gateways[(index / 2) % 2]!.url })
        : operator.messaging.sendAgentMessage({ conversationId, clientOperationId: `a${index}`, body: 'agent' }),
    )
    await Promise.all(writes)
    const sequences = (await visitor.history()).map(({ sequence }) => sequence)
    expect(sequences).toHaveLength(30)
    expect(sequences.every((sequence, index) => index === 0 || sequence > sequences[index - 1])).toBe(true)
  })
}
