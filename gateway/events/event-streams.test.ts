import { EventEmitter } from 'node:events'
import type { Server } from 'node:http'
import { describe, expect, test, vi } from 'vitest'
import { queueRequests } from '../../platform/http/request-queue.ts'
import { unavailable } from '../errors.ts'
import { isStreamSocket } from '../http/stream-socket.ts'
import { newScene, TestSocket } from '../test/test-event-streams.ts'
import { encodeHeartbeat, encodeOpening, UNSENT_MAX_BYTES } from './event-streams.ts'

const nextTick = () => new Promise<void>((resolve) => process.nextTick(resolve))
const nextTurn = () => new Promise(setImmediate)

describe('a stream that opens', () => {
  test('sends its headers and opening comment in one write, and detaches its socket from the HTTP request', async () => {
    const { ask, subscribed, openCount, count } = newScene()
    const { socket, raw, reply, outcome, sink, reader } = ask()
    const finished = vi.fn()
    const parse = vi.fn()
    raw.on('finish', finished)
    socket.on('data', parse)
    expect(subscribed[0]).toMatchObject({ credentials: { accessGrant: 'g' }, start: { afterSequence: 3 } })
    sink.opened(reader, 'ses_1', 'cnv_1')
    expect(await outcome).toBe('begun')
    await nextTick()
    const head = [
      'HTTP/1.1 200 OK',
      'vary: Origin',
      'content-type: text/event-stream',
      'cache-control: no-store, no-transform',
      'x-accel-buffering: no',
      'date: Tue, 01 Jan 2030 00:00:00 GMT',
      'connection: close',
    ]
    expect(socket.sent).toEqual([`${head.join('\r\n')}\r\n\r\nretry: 1250\n\n: open\n\n`, 'uncork'])
    expect([socket.timeout, socket.writableCorked, isStreamSocket(socket as never)]).toEqual([0, 0, true])
    socket.emit('data', 'more')
    expect(parse).not.toHaveBeenCalled()
    expect(socket.listenerCount('data')).toBe(1)
    expect(finished).toHaveBeenCalledOnce()
    expect(reply.hijack).toHaveBeenCalledOnce()
    expect([count(), await openCount()]).toEqual([1, 1])
  })

  test.each([
    [0, 500],
    [1, 2000],
  ])('spreads the reconnect time at random (random number %d: %d ms)', (random, ms) => {
    expect(newScene(random).begin().socket.sent[0]).toContain(`retry: ${ms}\n`)
  })

  test('is rejected with the error of the core if the core refuses the subscription', async () => {
    const { ask, count, begin } = newScene()
    const { outcome, sink, reader, reply, raw } = ask()
    const refusal = unavailable()
    sink.ended(reader, refusal)
    expect(await outcome).toBe(refusal)
    raw.emit('close')
    expect(reply.hijack).not.toHaveBeenCalled()
    expect(count()).toBe(0)
    expect(isStreamSocket(new TestSocket() as never)).toBe(false)
    begin()
  })

  test('is rejected if another request waits on its connection', async () => {
    const scene = newScene()
    const { socket, outcome, sink, reader } = scene.ask()
    const server = new EventEmitter()
    server.on('request', () => {})
    queueRequests(server as Server)
    for (let sent = 0; sent < 2; sent++) server.emit('request', { socket, headers: {} }, new EventEmitter())
    sink.opened(reader, 'ses_1', 'cnv_1')
    expect(await outcome).toMatchObject({
      code: 'ValidationFailed',
      details: { issues: [{ path: '', rule: 'pipelining' }], closesConnection: true },
    })
    expect(scene.unsubscribed).toEqual([1])
    expect(socket.sent).toEqual([])
    scene.stop()
    expect(scene.unsubscribed).toEqual([1])
  })

  test.each([
    ['has no socket', null],
    ['is destroyed', Object.assign(new TestSocket(), { destroyed: true })],
  ])('unsubscribes if its connection %s', async (_, socket) => {
    const scene = newScene()
    const { outcome, sink, reader } = scene.ask(socket)
    sink.opened(reader, 'ses_1', 'cnv_1')
    expect(await outcome).toBe('begun')
    expect([scene.unsubscribed, scene.count()]).toEqual([[1], 0])
  })

  test('unsubscribes if the browser disconnects before the core answers', async () => {
    const scene = newScene()
    const { outcome, raw, reply } = scene.ask()
    raw.emit('close')
    expect(await outcome).toBe('begun')
    expect(reply.hijack).toHaveBeenCalledOnce()
    expect(scene.unsubscribed).toEqual([1])
    scene.stop()
    expect(scene.unsubscribed).toEqual([1])
  })

  test('stays subscribed when the response object closes after its socket was taken over', () => {
    const { begin, unsubscribed } = newScene()
    const { raw, reply } = begin()
    raw.emit('close')
    expect(unsubscribed).toEqual([])
    expect(reply.hijack).toHaveBeenCalledOnce()
  })

  test('ends the oldest stream of its session if the session exceeds its stream limit', async () => {
    const { begin, endReasons, unsubscribed, count } = newScene()
    const [first, other, second, third] = [begin(), begin('ses_2'), begin(), begin()]
    expect([first, other, second, third].map(({ socket }) => socket.writableEnded)).toEqual([true, false, false, false])
    expect(await endReasons()).toEqual(['replaced'])
    expect([unsubscribed, count()]).toEqual([[1], 3])
    third.socket.destroy()
    begin()
    expect(second.socket.writableEnded).toBe(false)
    begin()
    expect(second.socket.writableEnded).toBe(true)
  })
})

describe('an open stream', () => {
  test('sends all writes of one turn of the event loop together', async () => {
    const { begin, eventCount } = newScene()
    const { socket, sink, reader } = begin()
    await nextTick()
    socket.sent = []
    for (const event of ['a', 'b']) sink.write(reader, Buffer.from(event))
    expect(socket.writableCorked).toBe(1)
    await nextTick()
    expect(socket.sent).toEqual(['a', 'b', 'uncork'])
    expect(await eventCount()).toBe(2)
  })

  test.each(['writableEnded', 'destroyed'] as const)('writes nothing to a connection that is %s', async (state) => {
    const { begin } = newScene()
    const { socket, sink, reader } = begin()
    await nextTick()
    socket.sent = []
    socket[state] = true
    sink.write(reader, Buffer.from('late'))
    await nextTick()
    expect(socket.sent).toEqual([])
  })

  test.each([
    ['core', undefined],
    ['session.revoked', 'session.revoked'],
  ])('counts the end reason %s when the core ends its subscription', async (reason, endedBy) => {
    const { begin, endReasons, unsubscribed, openCount } = newScene()
    const { socket, sink, reader } = begin()
    sink.ended(reader, undefined, endedBy)
    expect(socket.writableEnded).toBe(true)
    socket.emit('close')
    expect(await endReasons()).toEqual([reason])
    expect([unsubscribed, await openCount()]).toEqual([[1], 0])
  })

  test('is removed when the browser disconnects', async () => {
    const { begin, endReasons, unsubscribed, count } = newScene()
    const { socket } = begin()
    socket.emit('close')
    expect(await endReasons()).toEqual(['client'])
    expect([unsubscribed, count(), socket.writableEnded]).toEqual([[1], 0, false])
  })

  test('is destroyed if too many bytes are unsent in the event loop turn after a write', async () => {
    const { begin, endReasons } = newScene()
    const [slow, fast, full] = [begin('ses_1'), begin('ses_2'), begin('ses_3')]
    slow.socket.writableLength = fast.socket.writableLength = UNSENT_MAX_BYTES + 1
    full.socket.writableLength = UNSENT_MAX_BYTES
    for (const { sink, reader } of [slow, fast, full]) sink.write(reader, Buffer.from('x'))
    expect(slow.socket.destroyed).toBe(false)
    fast.socket.writableLength = UNSENT_MAX_BYTES
    full.socket.writableLength = UNSENT_MAX_BYTES + 1
    await nextTurn()
    expect([slow, fast, full].map(({ socket }) => socket.destroyed)).toEqual([true, false, false])
    expect(await endReasons()).toEqual(['slow'])
  })

  test('runs a `whenDrained` callback at once, or after the drain if the connection is full', () => {
    const { begin } = newScene()
    const { socket, sink, reader } = begin()
    const run = vi.fn()
    sink.whenDrained(reader, run)
    expect(run).toHaveBeenCalledTimes(1)
    socket.writableNeedDrain = true
    sink.whenDrained(reader, run)
    expect(run).toHaveBeenCalledTimes(1)
    for (let drained = 0; drained < 2; drained++) socket.emit('drain')
    expect(run).toHaveBeenCalledTimes(2)
    sink.whenDrained({ ...reader, socket: undefined }, run)
    expect(run).toHaveBeenCalledTimes(3)
  })
})

describe('the timer that runs each second', () => {
  const heartbeats = ({ sent }: { sent: string[] }) => sent.filter((text) => text === ': hb 7\n\n').length

  test('sends a heartbeat on each stream that began one heartbeat interval ago', () => {
    const { start, begin, advance, every } = newScene()
    start()
    expect(every.mock.calls[0]![0]).toBe(1000)
    const early = begin('ses_1')
    advance(1)
    const late = begin('ses_2')
    advance(2)
    expect([heartbeats(early.socket), heartbeats(late.socket)]).toEqual([1, 0])
    advance(1)
    expect([heartbeats(early.socket), heartbeats(late.socket)]).toEqual([1, 1])
    advance(5)
    expect([heartbeats(early.socket), heartbeats(late.socket)]).toEqual([3, 2])
    early.socket.emit('close')
    advance(3)
    expect(heartbeats(early.socket)).toBe(3)
  })

  test('sends no heartbeat on a stream while no core serves its subscription', () => {
    const { start, begin, advance } = newScene()
    start()
    const { socket, reader } = begin()
    reader.subscription = { position: 7, attached: false }
    advance(3)
    expect(heartbeats(socket)).toBe(0)
  })

  test.each([
    [0, 102],
    [0.5, 93],
    [1, 84],
  ])('with the random number %d, an open stream ends after %d s', async (random, seconds) => {
    const { start, begin, advance, endReasons } = newScene(random)
    start()
    const { socket } = begin()
    advance(seconds - 3)
    expect(socket.writableEnded).toBe(false)
    advance(3)
    expect(socket.writableEnded).toBe(true)
    expect(await endReasons()).toEqual(['age'])
  })
})

describe('stopping all streams', () => {
  test('rejects streams that are opening, ends open streams and rejects later streams', async () => {
    const scene = newScene()
    scene.start()
    const opening = scene.ask()
    const open = scene.begin()
    scene.stop()
    expect(await opening.outcome).toMatchObject({ code: 'ServiceUnavailable' })
    expect(open.socket.writableEnded).toBe(true)
    expect(await scene.endReasons()).toEqual(['shutdown'])
    expect([scene.unsubscribed, scene.count()]).toEqual([[1, 2], 0])
    expect(scene.cancel).toHaveBeenCalledOnce()
    expect(await scene.ask().outcome).toMatchObject({ code: 'ServiceUnavailable' })
    expect(scene.subscribed).toHaveLength(2)
  })

  test('has no effect before the streams are started', () => {
    expect(() => newScene().stop()).not.toThrow()
  })
})

test('encodeOpening writes the retry time in whole milliseconds and a comment', () => {
  expect(encodeOpening(1999.6)).toBe('retry: 2000\n\n: open\n\n')
})

test('encodeHeartbeat writes a comment with the position', () => {
  expect(encodeHeartbeat(42)).toBe(': hb 42\n\n')
})
