import { describe, expect, it } from 'vitest'
import { createClientHarness, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const { server } = serverPerTest()

describe('sending', () => {
  it('a message is shown at once and accepted once; response, event and history entry are merged into one message', async () => {
    const harness = createClientHarness(server, 'pk_friendly')
    await harness.started()
    const message = harness.client.sendMessage('Do you ship to Norway?')

    expect(message.deliveryStatus).toBe('pending')
    expect(harness.bodies()).toEqual(['Do you ship to Norway?'])
    await until(() => harness.states()[0] === 'queued' && server.conversation('pk_friendly').lastSequence() === 1)
    server.conversation('pk_friendly').agentSays('We do.')
    await until(() => harness.bodies().length === 2)

    expect(harness.bodies()).toEqual(['Do you ship to Norway?', 'We do.'])
    expect(harness.count('message.queued')).toBe(1)
    expect(harness.count('message.accepted')).toBe(1)
    expect(harness.count('message.received')).toBe(1)
    expect(harness.client.messages()[0]?.key).toBe(message.key)
  })

  it('a message is sent with one id as operation id and idempotency key, and without credentials in the URL', async () => {
    const harness = createClientHarness(server, 'pk_friendly')
    await harness.started()
    const { clientOperationId } = harness.client.sendMessage('Hello')
    await until(() => harness.states()[0] === 'queued')

    const [send] = server.seen('POST /messages')
    expect(send?.headers['idempotency-key']).toBe(clientOperationId)
    expect(send?.body).toMatchObject({ clientOperationId, body: 'Hello', contentType: 'text' })
    expect(send?.headers['x-service-widget-version']).toBe('1.0')
    for (const { query } of server.requests) {
      expect(Object.keys(query).filter((name) => !/^(afterSequence|beforeSequence|limit)$/.test(name))).toEqual([])
    }
  })

  it('a message whose answer is lost is not sent again if the stream shows it', async () => {
    const harness = createClientHarness(server, 'pk_lost_answer')
    await harness.started()
    harness.client.sendMessage('Hello')
    await until(() => harness.count('message.accepted') === 1 && harness.states()[0] === 'queued')
    harness.clock.advance(60_000)
    harness.client.sendMessage('And once more')
    await until(() => harness.count('message.accepted') === 2)

    expect(server.seen('POST /messages').map(({ body }) => (body as { body: string }).body)).toEqual([
      'Hello',
      'And once more',
    ])
  })

  it('a message is sent after the messages that were written before it, even if sends are slow', async () => {
    const harness = createClientHarness(server, 'pk_event_before_answer')
    await harness.started()
    for (const body of ['one', 'two', 'three']) harness.client.sendMessage(body)
    await until(() => harness.states().every((state) => state === 'queued'))

    expect(harness.bodies()).toEqual(['one', 'two', 'three'])
    expect(harness.client.messages().map(({ sequence }) => sequence)).toEqual([1, 2, 3])
  })

  it('a message is retried after each 503 and emits each attempt', async () => {
    const harness = createClientHarness(server, 'pk_unavailable_twice')
    await harness.started()
    harness.client.sendMessage('Hello')
    await until(() => harness.count('message.retrying') === 1)
    harness.clock.advance(2_000)
    await until(() => harness.count('message.retrying') === 2)
    harness.clock.advance(4_000)
    await until(() => harness.states()[0] === 'queued')

    const attempts = harness.events.filter(({ name }) => name === 'message.retrying')
    expect(attempts.map(({ payload }) => (payload as { attempt: number }).attempt)).toEqual([1, 2])
    expect(server.conversation('pk_unavailable_twice').messages).toHaveLength(1)
  })

  it('a message is retried while the service still executes an earlier attempt', async () => {
    const harness = createClientHarness(server, 'pk_in_progress')
    await harness.started()
    harness.client.sendMessage('Hello')
    for (const attempt of [1, 2]) {
      await until(() => harness.count('message.retrying') === attempt)
      harness.clock.advance(4_000)
    }
    await until(() => harness.states()[0] === 'queued')
  })

  it('a message fails after its last attempt, and a manual retry keeps the operation id', async () => {
    const harness = createClientHarness(server, 'pk_unavailable')
    await harness.started()
    const { clientOperationId } = harness.client.sendMessage('Hello')
    for (let attempt = 1; attempt <= 7; attempt += 1) {
      await until(() => harness.count('message.retrying') === attempt)
      harness.clock.advance(30_000)
    }
    await until(() => harness.states()[0] === 'failed')

    const exhausted = harness.events.find(({ name }) => name === 'message.retry.exhausted')
    expect(exhausted?.payload).toMatchObject({ error: { code: 'ServiceUnavailable', recoverable: true } })
    expect(harness.client.retryMessage(clientOperationId!)).toBe(true)
    expect(harness.states()).toEqual(['pending'])
    await until(() => harness.count('message.retrying') === 8)
    const keys = new Set(server.seen('POST /messages').map(({ headers }) => headers['idempotency-key']))
    expect([...keys]).toEqual([clientOperationId])
  })

  it.each([
    ['   \n ', 'message_empty'],
    ['x'.repeat(4_001), 'message_too_long'],
    ['😀'.repeat(4_001), 'message_too_long'],
  ])('a message is refused and not shown if it is empty or too long', async (body, code) => {
    const harness = createClientHarness(server, 'pk_friendly')
    await harness.started()
    expect(() => harness.client.sendMessage(body)).toThrow(expect.objectContaining({ code }))
    expect(harness.bodies()).toEqual([])
  })

  it('a message is sent if it has 4,000 code points of two UTF-16 units each', async () => {
    const harness = createClientHarness(server, 'pk_friendly')
    await harness.started()
    harness.client.sendMessage('😀'.repeat(4_000))
    await until(() => harness.states()[0] === 'queued')
    expect(server.seen('POST /messages')[0]?.body?.body).toBe('😀'.repeat(4_000))
  })

  it('a message is sent without control characters, and with lone surrogates replaced', async () => {
    const harness = createClientHarness(server, 'pk_friendly')
    await harness.started()
    harness.client.sendMessage('a\r\nb\tc\u0000\u0007d \ud800 e 🌿')
    await until(() => harness.states()[0] === 'queued')
    expect(server.seen('POST /messages')[0]?.body?.body).toBe('a\nb\tcd \ufffd e 🌿')
  })
})
