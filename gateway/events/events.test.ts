import { describe, expect, test } from 'vitest'
import { infoOf } from '../test/core-answers.ts'
import { SITE } from '../test/test-core.ts'
import { startTestGateway } from '../test/test-gateway.ts'
import { ids, openRawStream, openStream } from '../test/test-streams.ts'

describe('event stream', () => {
  test('sends two readers the same bytes', async () => {
    const gateway = await startTestGateway()
    const streams = [await openStream(gateway), await openStream(gateway)]
    for (let sent = 0; sent < 5; sent++) gateway.core.publish('message.received', { sent })
    for (const stream of streams) await expect.poll(() => ids(stream)).toEqual(['e1-1', 'e1-2', 'e1-3', 'e1-4', 'e1-5'])
    expect(streams[0]!.text).toBe(streams[1]!.text)
    expect(gateway.core.links).toHaveLength(1)
  })

  test('forwards a replay of several events unchanged, and drops it if the core sends it again', async () => {
    const gateway = await startTestGateway()
    const text = Buffer.from(
      'id: e1-4\nevent: message.received\ndata: {"a":"ü"}\n\nid: e1-6\nevent: agent.assigned\ndata: {}\n\n',
    )
    gateway.core.onSubscribe = (link, { subscriptionId }) => {
      const value = { subscriptionId, sequence: 6, events: 2, text }
      link.push(
        { case: 'opened', value: { subscriptionId, sessionId: 'ses_1', epoch: 'e1', sequence: 3 } },
        ...[value, value].map((each) => ({ case: 'replayed' as const, value: each })),
        { case: 'replayed', value: { subscriptionId: 99, sequence: 7, events: 1, text } },
        { case: 'advanced', value: { subscriptionIds: [subscriptionId], sequence: 8 } },
        { case: 'closed', value: { subscriptionId } },
      )
    }
    const stream = await openStream(gateway)
    await expect.poll(() => stream.ended).toBe(true)
    expect(stream.text).toBe(`retry: 1250\n\n: open\n\n${text}`)
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

describe('connection of an event stream', () => {
  test('transfers nothing but the stream after the headers, over HTTP/1.1 and 1.0', async () => {
    const gateway = await startTestGateway()
    for (const version of ['1.1', '1.0']) {
      const stream = openRawStream(gateway, '', version)
      await expect.poll(() => stream.text()).toContain('retry: 1250\n\n: open\n\n')
      const [head = '', body] = stream.text().split('\r\n\r\n')
      expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
      expect(head.toLowerCase()).toContain('\r\nconnection: close')
      expect(head).toMatch(/\r\ndate: .+ GMT/)
      expect(head.toLowerCase()).not.toContain('transfer-encoding')
      expect(body).toBe('retry: 1250\n\n: open\n\n')
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
