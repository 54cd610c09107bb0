import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createTestCore, infoOf, refusal, SITE } from '../test/test-core.ts'
import { startTestGateway, type TestGateway } from '../test/test-gateway.ts'
import { openSocket } from '../test/test-socket.ts'

/** Opens a stream like a browser. Returns its text so far and whether it has ended. */
async function openStream({ call }: TestGateway, path = '/events', headers: Record<string, string> = {}) {
  const abort = new AbortController()
  onTestFinished(() => abort.abort())
  const response = await call('GET', path, { headers, signal: abort.signal })
  const events: EventSourceMessage[] = []
  const comments: string[] = []
  const stream = {
    response,
    events,
    comments,
    retry: 0,
    text: '',
    ended: false,
    broken: false,
    abort: () => abort.abort(),
  }
  if (response.headers.get('content-type') !== 'text/event-stream') return stream
  const parser = createParser({
    onEvent: (event) => events.push(event),
    onComment: (comment) => comments.push(comment),
    onRetry: (ms) => {
      stream.retry = ms
    },
  })
  void (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body!) {
      const text = decoder.decode(chunk, { stream: true })
      stream.text += text
      parser.feed(text)
    }
    stream.ended = true
  })().catch(() => {
    stream.broken = true
  })
  return stream
}

const ids = ({ events }: { events: EventSourceMessage[] }) => events.map(({ id }) => id)

describe('event stream', () => {
  test('begins at once, with headers against proxy buffering', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    expect(stream.response.status).toBe(200)
    expect(Object.fromEntries(stream.response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      'access-control-allow-origin': SITE,
      vary: 'Origin',
    })
    expect(stream.response.headers.get('x-correlation-id')).not.toBeNull()
    await expect.poll(() => stream.text).toBe('retry: 2000\n\n: open\n\n')
  })

  test('encodes an event as the contract describes', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    gateway.core.publish('message.received', { text: 'a\nb' })
    await expect.poll(() => stream.events.length).toBe(1)
    expect(stream.text).toContain(
      'id: e1-1\nevent: message.received\ndata: {"sequence":1,"type":"message.received","data":{"text":"a\\nb"}}\n\n',
    )
  })

  test('sends two readers the same bytes', async () => {
    const gateway = await startTestGateway()
    const streams = [await openStream(gateway), await openStream(gateway)]
    for (let sent = 0; sent < 5; sent++) gateway.core.publish('message.received', { sent })
    for (const stream of streams) await expect.poll(() => ids(stream)).toEqual(['e1-1', 'e1-2', 'e1-3', 'e1-4', 'e1-5'])
    expect(streams[0]!.text).toBe(streams[1]!.text)
    expect(gateway.core.links).toHaveLength(1)
  })

  test('forwards the start point to the core and replays from it', async () => {
    const gateway = await startTestGateway()
    for (let sent = 0; sent < 4; sent++) gateway.core.publish('message.received')
    const stream = await openStream(gateway, '/events?afterSequence=1', { 'last-event-id': 'e1-2' })
    await expect.poll(() => ids(stream)).toEqual(['e1-3', 'e1-4'])
    expect(gateway.core.links[0]!.subscribed[0]).toMatchObject({
      afterSequence: 1,
      lastEventId: 'e1-2',
      resumed: false,
    })
  })

  test.each([
    ['no id at all', 'no id at all'],
    ['x'.repeat(257), 'invalid'],
  ])('forwards a malformed Last-Event-ID to the core', async (given, passedOn) => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway, '/events', { 'last-event-id': given })
    expect(stream.response.status).toBe(200)
    expect(gateway.core.links[0]!.subscribed[0]!.lastEventId).toBe(passedOn)
  })

  test('sends a reset event even if the reader has already passed its sequence, and then ends', async () => {
    const gateway = await startTestGateway()
    gateway.core.onSubscribe = (link, { subscriptionId }) => {
      link.push(
        { case: 'opened', value: { subscriptionId, sessionId: 'ses_1', epoch: 'e1', sequence: 900 } },
        {
          case: 'event',
          value: {
            subscriptionIds: [subscriptionId],
            id: 'e1-7',
            sequence: 7,
            type: 'replay.reset.required',
            json: '{}',
          },
        },
        { case: 'closed', value: { subscriptionId } },
      )
    }
    const stream = await openStream(gateway, '/events', { 'last-event-id': 'e1-900' })
    await expect.poll(() => stream.ended).toBe(true)
    expect(stream.events).toMatchObject([{ event: 'replay.reset.required', id: 'e1-7' }])
  })

  test('sends no forged event if an event contains line breaks', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    const [subscriptionId] = gateway.core.links[0]!.open.keys()
    const good = { subscriptionIds: [subscriptionId!], type: 'message.received', json: '{}' }
    gateway.core.links[0]!.push(
      {
        case: 'event',
        value: { ...good, id: 'e1-1', sequence: 1, json: '{"a":1,\r\nid: 999\revent: forged\n\n"b":2}' },
      },
      { case: 'event', value: { ...good, id: 'e1-2\nid: 999', sequence: 2 } },
      { case: 'event', value: { ...good, id: 'e1-3', type: 'x\ndata: forged', sequence: 3 } },
      { case: 'event', value: { ...good, id: 'e1-4', sequence: 4 } },
    )
    await expect.poll(() => ids(stream)).toEqual(['e1-1', 'e1-4'])
    expect(stream.text).not.toMatch(/^(id: 999|event: forged|data: forged)/m)
  })

  test('is answered with the error envelope if the core refuses the subscription', async () => {
    const gateway = await startTestGateway()
    gateway.core.onSubscribe = (link, { subscriptionId }) =>
      link.push({ case: 'closed', value: { subscriptionId, error: infoOf('VisitorBanned') } })
    const { response } = await openStream(gateway)
    expect(response.status).toBe(403)
    expect(response.headers.get('content-type')).toMatch('application/json')
    expect(response.headers.get('access-control-allow-origin')).toBe(SITE)
    expect(await response.json()).toMatchObject({ code: 'VisitorBanned', terminal: true })
  })

  test.each(['?afterSequence=x', '?afterSequence=-1', '?since=1'])('rejects the query %s', async (query) => {
    const gateway = await startTestGateway()
    const { response } = await openStream(gateway, `/events${query}`)
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'ValidationFailed' }])
  })

  test('ends after its last event when the core closes the subscription', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    const link = gateway.core.links[0]!
    gateway.core.publish('session.revoked')
    link.push({ case: 'closed', value: { subscriptionId: [...link.open.keys()][0]! } })
    await expect.poll(() => stream.ended).toBe(true)
    expect(stream.events).toMatchObject([{ event: 'session.revoked' }])
  })

  test('unsubscribes from the core when the browser disconnects', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    expect(gateway.core.links[0]!.open.size).toBe(1)
    stream.abort()
    await expect.poll(() => gateway.core.links[0]!.open.size).toBe(0)
  })

  test('requests the next replay page after the previous one is written', async () => {
    const gateway = await startTestGateway()
    await openStream(gateway)
    const link = gateway.core.links[0]!
    const [subscriptionId] = link.open.keys()
    link.push({ case: 'paused', value: { subscriptionId: subscriptionId! } })
    await expect.poll(() => link.commands.at(-1)).toMatchObject({ case: 'continue', value: { subscriptionId } })
  })
})

const openRawStream = ({ port }: TestGateway, after = '', version = '1.1') =>
  openSocket(port, `${streamRequest(version)}${after}`, { allowHalfOpen: false })

const streamRequest = (version = '1.1') =>
  `GET /api/integrations/v1/widget/events HTTP/${version}\r\nHost: x\r\nOrigin: ${SITE}\r\nX-Service-Widget-Version: 1.0\r\nAuthorization: Bearer grant-1\r\n\r\n`

describe('connection of an event stream', () => {
  test('transfers only the stream after the headers, over HTTP/1.1 and 1.0', async () => {
    const gateway = await startTestGateway()
    for (const version of ['1.1', '1.0']) {
      const stream = openRawStream(gateway, '', version)
      await expect.poll(() => stream.text()).toContain('retry: 2000\n\n: open\n\n')
      const [head = '', body] = stream.text().split('\r\n\r\n')
      expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
      expect(head.toLowerCase()).toContain('\r\nconnection: close')
      expect(head).toMatch(/\r\ndate: .+ GMT/)
      expect(head.toLowerCase()).not.toContain('transfer-encoding')
      expect(body).toBe('retry: 2000\n\n: open\n\n')
    }
  })

  test('transfers no other answer if the client sends more requests on the connection', async () => {
    const gateway = await startTestGateway()
    const stream = openRawStream(gateway)
    await expect.poll(() => stream.text()).toContain(': open')
    stream.socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')
    stream.socket.write('\u0000 no HTTP at all \r\n\r\n')
    gateway.core.publish('message.received', { n: 1 })
    await expect.poll(() => stream.text()).toContain('id: e1-1')
    expect(stream.text().match(/HTTP\//g)).toHaveLength(1)
    expect(stream.isEnded()).toBe(false)
  })

  test('is closed if another request follows before the stream begins', async () => {
    const gateway = await startTestGateway()
    const reader = await openStream(gateway)
    const stream = openRawStream(gateway, streamRequest())
    await expect.poll(() => stream.isEnded()).toBe(true)
    expect(stream.text()).not.toContain('HTTP/1.1 200')
    await expect.poll(() => gateway.core.links[0]!.open.size).toBe(1)
    gateway.core.publish('message.received', { n: 1 })
    await expect.poll(() => ids(reader)).toEqual(['e1-1'])
  })

  test('is detached from its request, which is logged when the stream begins', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    const line = () => gateway.lines.map((each) => JSON.parse(each)).find(({ msg }) => msg === 'request')
    await expect.poll(line).toMatchObject({
      method: 'GET',
      status: 200,
      correlationId: stream.response.headers.get('x-correlation-id'),
    })
    expect(stream.ended).toBe(false)
  })
})

describe('heartbeats', () => {
  test('send the position of the stream every 15 s; the position includes events that this stream does not get', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    gateway.core.publish('message.received')
    const link = gateway.core.links[0]!
    link.push({ case: 'advanced', value: { subscriptionIds: [...link.open.keys()], sequence: 5 } })
    gateway.core.log.push(...[2, 3, 4, 5].map((sequence) => ({ sequence, type: 'typing.started', json: '{}' })))
    gateway.core.publish('message.received')
    await expect.poll(() => ids(stream)).toEqual(['e1-1', 'e1-6'])
    gateway.clock.advance(14_000)
    gateway.clock.advance(1_000)
    await expect.poll(() => stream.comments).toEqual(['open', 'hb 6'])
    gateway.clock.advance(30_000)
    await expect.poll(() => stream.comments).toEqual(['open', 'hb 6', 'hb 6', 'hb 6'])
  })

  test('are not sent while no core serves the stream', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    gateway.core.down = true
    gateway.core.links[0]!.break()
    await expect.poll(() => gateway.core.links.length).toBe(0)
    await expect.poll(() => gateway.lines.join('')).toContain('event link is down')
    gateway.clock.advance(20_000)
    gateway.core.down = false
    await expect.poll(() => gateway.core.links[0]?.open.size).toBe(1)
    gateway.core.publish('message.received')
    await expect.poll(() => ids(stream)).toEqual(['e1-1'])
    expect(stream.comments).toEqual(['open'])
    expect(stream.ended).toBe(false)
  })
})

describe('loss of the connection to a core', () => {
  test('ends no stream, and no event is lost or sent twice', async () => {
    const gateway = await startTestGateway()
    const { core } = gateway
    const streams = [await openStream(gateway), await openStream(gateway)]
    core.publish('message.received')
    core.publish('message.received')
    for (const stream of streams) await expect.poll(() => ids(stream)).toHaveLength(2)
    core.links[0]!.break()
    await expect.poll(() => core.links.length).toBe(0)
    core.publish('message.received')
    await expect.poll(() => core.links[0]?.subscribed.length).toBe(2)
    expect(core.links[0]!.subscribed).toMatchObject([
      { resumed: true, lastEventId: 'e1-2' },
      { resumed: true, lastEventId: 'e1-2' },
    ])
    core.publish('message.received')
    for (const stream of streams) {
      await expect.poll(() => ids(stream)).toEqual(['e1-1', 'e1-2', 'e1-3', 'e1-4'])
      expect([stream.ended, stream.broken]).toEqual([false, false])
    }
  })

  test('causes no duplicate events if the core sends old events again', async () => {
    const gateway = await startTestGateway()
    const { core } = gateway
    const stream = await openStream(gateway)
    core.publish('message.received')
    core.publish('message.received')
    await expect.poll(() => ids(stream)).toHaveLength(2)
    core.onSubscribe = (link, { subscriptionId }) => {
      link.push({ case: 'opened', value: { subscriptionId, sessionId: 'ses_1', epoch: 'e1', sequence: 0 } })
      for (const sequence of [1, 2, 3, 3]) {
        const value = {
          subscriptionIds: [subscriptionId],
          id: `e1-${sequence}`,
          sequence,
          type: 'message.received',
          json: '{}',
        }
        link.push({ case: 'event', value })
      }
    }
    core.links[0]!.break()
    await expect.poll(() => ids(stream)).toEqual(['e1-1', 'e1-2', 'e1-3'])
  })

  test('moves its streams to another core if the core stays unreachable', async () => {
    const cores = [createTestCore(), createTestCore()]
    const gateway = await startTestGateway({ cores })
    await expect.poll(() => cores.every(({ links }) => links.length === 1)).toBe(true)
    const streams = [await openStream(gateway), await openStream(gateway)]
    expect(cores.map(({ links }) => links[0]!.open.size)).toEqual([1, 1])
    cores[0]!.down = true
    cores[0]!.links[0]!.break()
    await expect.poll(() => cores[1]!.links[0]!.open.size).toBe(2)
    cores[1]!.publish('message.received')
    for (const stream of streams) await expect.poll(() => ids(stream)).toEqual(['e1-1'])
  })

  test('ends the streams after 30 s without any core, and new streams get 503 at once', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    gateway.core.down = true
    gateway.core.links[0]!.break()
    await expect.poll(() => gateway.core.links.length).toBe(0)
    await expect.poll(async () => (await openStream(gateway)).response.status, { interval: 100 }).toBe(503)
    gateway.clock.advance(29_000)
    expect(stream.ended).toBe(false)
    gateway.clock.advance(2_000)
    await expect.poll(() => stream.ended).toBe(true)
  })

  test('keeps a stream if the core fails to resume it with a retryable error', async () => {
    const gateway = await startTestGateway()
    const { core } = gateway
    const stream = await openStream(gateway)
    const open = core.onSubscribe
    core.onSubscribe = (link, { subscriptionId }) =>
      link.push({ case: 'closed', value: { subscriptionId, error: infoOf('ServiceUnavailable') } })
    core.links[0]!.break()
    await expect.poll(() => core.links[0]?.subscribed.length).toBe(1)
    core.onSubscribe = open
    const openAfterATick = () => {
      gateway.clock.advance(1_000)
      return core.links[0]!.open.size
    }
    await expect.poll(openAfterATick).toBe(1)
    core.publish('message.received')
    await expect.poll(() => ids(stream)).toEqual(['e1-1'])
  })

  test('ends a stream whose session ended during the outage', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    gateway.core.grants.set('grant-1', 'SessionRevoked')
    gateway.core.links[0]!.break()
    await expect.poll(() => stream.ended).toBe(true)
  })
})

describe('stream limits', () => {
  test('the seventh stream of a session closes only the oldest of that session', async () => {
    const gateway = await startTestGateway()
    gateway.core.grants.set('grant-2', 'ok')
    const other = await openStream(gateway, '/events', { authorization: 'Bearer grant-2' })
    const streams: Awaited<ReturnType<typeof openStream>>[] = []
    for (let opened = 0; opened < 7; opened++) streams.push(await openStream(gateway))
    await expect.poll(() => streams.map(({ ended }) => ended)).toEqual([true, ...Array(6).fill(false)])
    expect(other.ended).toBe(false)
    await expect.poll(() => gateway.core.links[0]!.open.size).toBe(7)
  })

  test('a stream ends within 30 minutes', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    gateway.clock.advance(24 * 60_000)
    await expect.poll(() => stream.comments.length).toBe(1 + 24 * 4)
    expect(stream.ended).toBe(false)
    gateway.clock.advance(6 * 60_000)
    await expect.poll(() => stream.ended).toBe(true)
  })

  test('a reader that does not read is disconnected, and others continue', async () => {
    const gateway = await startTestGateway()
    const reader = await openStream(gateway)
    const { socket, closed } = openRawStream(gateway)
    socket.pause()
    await expect.poll(() => gateway.core.links[0]!.open.size).toBe(2)
    let sent = 0
    await expect
      .poll(
        () => {
          for (let burst = 0; burst < 4; burst++)
            gateway.core.publish('message.received', { sent: sent++, x: 'x'.repeat(32_768) })
          return gateway.core.links[0]!.open.size
        },
        { interval: 5, timeout: 20_000 },
      )
      .toBe(1)
    socket.resume()
    await closed
    await expect.poll(() => reader.events.length, { timeout: 10_000 }).toBe(gateway.core.log.length)
    expect(reader.broken).toBe(false)
  })

  test('streams end when the gateway stops', async () => {
    const gateway = await startTestGateway()
    const stream = await openStream(gateway)
    await gateway.gateway.close()
    await expect.poll(() => stream.ended).toBe(true)
    expect(stream.broken).toBe(false)
  })

  test('a pending stream is rejected when the gateway stops', async () => {
    const gateway = await startTestGateway()
    gateway.core.onSubscribe = () => {}
    const asked = openStream(gateway)
    await expect.poll(() => gateway.core.links[0]?.subscribed.length).toBe(1)
    await gateway.gateway.close()
    expect((await asked).response.status).toBe(503)
  })

  test('opening a stream counts towards the limit of calls per session', async () => {
    const gateway = await startTestGateway({ env: { RATE_LIMIT_CALLS_PER_MINUTE: '1' } })
    expect((await openStream(gateway)).response.status).toBe(200)
    expect((await openStream(gateway)).response.status).toBe(429)
  })

  test('a request with a rejected grant opens no stream', async () => {
    const gateway = await startTestGateway()
    gateway.core.refuseNext = undefined
    await gateway.call('GET', '/messages')
    gateway.core.refuseNext = refusal('GrantInvalid')
    const { response } = await openStream(gateway, '/events', { authorization: 'Bearer forged' })
    expect([response.status, await response.json()]).toMatchObject([401, { code: 'GrantInvalid' }])
    expect(gateway.core.links[0]!.subscribed).toHaveLength(0)
  })
})
