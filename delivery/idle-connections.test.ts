import { afterAll, describe, expect, it } from 'vitest'
import { AttemptPhase, FailureReason } from '#proto/lead/v1/delivery_pb.js'
import { startReceiver } from '../test/support/receiver.ts'
import { until } from '../test/support/until.ts'
import { answered, failed, named, never, request, senderWith } from './test/test-sender.ts'

const receiver = await startReceiver()
afterAll(() => receiver.close())

describe('idle connections', () => {
  it('a sender reuses an idle connection for a request to the same origin', async () => {
    const sender = senderWith()
    const before = receiver.connections()
    for (const path of ['/200', '/404', '/500']) await sender.send(request(`${receiver.http}${path}`), never)
    expect(receiver.connections() - before).toBe(1)
    await sender.send(request(`${receiver.https('good')}/200`), never)
    await sender.send(request(`${receiver.https('good')}/200`), never)
    expect(receiver.connections() - before).toBe(2)
  })

  it('a sender does not reuse an idle connection if the name now resolves to another address', async () => {
    const other = await startReceiver('127.0.0.2')
    let address = '127.0.0.1'
    const sender = senderWith({ lookup: (...call) => named(address)(...call) })
    const url = `http://moving.example:${receiver.port}/200`
    const before = receiver.connections()
    expect(await sender.send(request(url), never)).toEqual(answered(200))
    address = '127.0.0.2'
    expect(await sender.send(request(url), never)).toEqual(
      failed(AttemptPhase.CONNECT, FailureReason.CONNECTION_REFUSED),
    )
    address = '127.0.0.1'
    expect(await sender.send(request(url), never)).toEqual(answered(200))
    expect(receiver.connections() - before).toBe(1)
    await other.close()
  })

  it('a sender tries another address if an address refuses the connection', async () => {
    const sender = senderWith({ lookup: named('127.0.0.3', '127.0.0.1') })
    expect(await sender.send(request(`http://two.example:${receiver.port}/200`), never)).toEqual(answered(200))
  })

  it('a sender repeats a request on a new connection if the server closed the idle connection', async () => {
    const sender = senderWith()
    const before = receiver.connections()
    expect(await sender.send(request(`${receiver.http}/200-then-reset`), never)).toEqual(answered(200))
    expect(await sender.send(request(`${receiver.http}/200-then-reset`), never)).toEqual(answered(200))
    expect(receiver.connections() - before).toBe(2)
  })

  it('a sender succeeds with the next request if the server closes the connection right after a response', async () => {
    const sender = senderWith()
    receiver.on('/ends', (request, response) => {
      const end = () => request.socket.destroy()
      response.end('ok', () =>
        [end, () => setImmediate(end), () => queueMicrotask(end)][receiver.requests.length % 3]?.(),
      )
    })
    for (let attempt = 0; attempt < 60; attempt++) {
      expect(await sender.send(request(`${receiver.http}/ends`), never)).toEqual(answered(200))
    }
  })

  it('a sender does not reuse a connection if the server closes it or sends extra data', async () => {
    const sender = senderWith()
    expect(await sender.send(request(`${receiver.http}/200-and-close`), never)).toEqual(answered(200))
    await until('the connection to be dropped', () => sender.idleConnections() === 0)
    expect(await sender.send(request(`${receiver.http}/200-and-more`), never)).toEqual(answered(200))
    await until('the connection to be dropped', () => sender.idleConnections() === 0)
    expect(await sender.send(request(`${receiver.http}/200`), never)).toEqual(answered(200))
  })

  it('a sender keeps at most `maxIdle` idle connections', async () => {
    const sender = senderWith({ maxIdle: 2 })
    await Promise.all(Array.from({ length: 6 }, () => sender.send(request(`${receiver.http}/200`), never)))
    expect(sender.idleConnections()).toBe(2)
    await sender.close()
    expect(sender.idleConnections()).toBe(0)
  })
})
