import { Socket } from 'node:net'
import { afterAll, describe, expect, it } from 'vitest'
import { AttemptPhase, FailureReason } from '#proto/lead/v1/delivery_pb.js'
import { NameError } from '../platform/addresses/resolve.ts'
import { startReceiver } from '../test/support/receiver.ts'
import { retryDate } from '../test/support/receiver-behaviours.ts'
import { until } from '../test/support/until.ts'
import { answered, body, failed, named, never, request, send, senderWith } from './test/test-sender.ts'

const receiver = await startReceiver()
afterAll(() => receiver.close())
const { RESOLVE, CONNECT, TLS, HEADERS, BODY } = AttemptPhase

describe('senders', () => {
  it('a sender sends exactly the prepared headers and body', async () => {
    expect(await send(`${receiver.http}/200?team=7&x=%20y`)).toEqual(answered(200))
    const [got] = receiver.to('/200?team=7&x=%20y')
    expect(got?.method).toBe('POST')
    expect(got?.body).toEqual(Buffer.from(body))
    expect(got?.headers).toEqual({
      host: `127.0.0.1:${receiver.port}`,
      connection: 'keep-alive',
      'content-type': 'application/json',
      'content-length': String(body.length),
      'x-service-webhook-id': 'dlv_1',
    })
  })

  it('a sender drops prepared headers that would set the host or the length', async () => {
    const headers = {
      host: 'metadata.internal',
      'Content-Length': '1',
      connection: 'close',
      'transfer-encoding': 'chunked',
    }
    expect(await send(`${receiver.http}/201`, { headers })).toEqual(answered(201))
    expect(receiver.to('/201')[0]?.headers).toMatchObject({
      host: `127.0.0.1:${receiver.port}`,
      'content-length': String(body.length),
    })
  })

  it('a sender uses the host name of the destination for TLS and in the Host header', async () => {
    expect(await send(`${receiver.https('good')}/202`)).toEqual(answered(202))
    expect(receiver.to('/202')[0]?.headers.host).toBe(`good.receiver.example:${receiver.httpsPort}`)
    expect(await send(`https://127.0.0.1:${receiver.httpsPort}/203`)).toEqual(answered(203))
  })

  it.each([200, 204, 299, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 599])(
    'a sender reports the response status %d',
    async (status) => {
      expect(await send(`${receiver.http}/${status}`)).toEqual(answered(status))
    },
  )

  it.each([
    ['429-retry-after-seconds', 429, 120_000n],
    ['429-retry-after-fraction', 429, 1_500n],
    ['429-retry-after-past', 429, 0n],
    ['429-retry-after-huge', 429, BigInt(Number.MAX_SAFE_INTEGER)],
    ['503-retry-after-seconds', 503, 2_000n],
    ['429-retry-after-garbage', 429, undefined],
  ])(
    'a sender reports the wait of the Retry-After header of a response from /%s',
    async (path, status, retryAfterMs) => {
      const { value } = await send(`${receiver.http}/${path}`)
      expect(value).toEqual({ ...answered(status).value, ...(retryAfterMs !== undefined && { retryAfterMs }) })
    },
  )

  it('a sender reports the longest of several waits', async () => {
    receiver.on('/429-twice', ({ socket }) =>
      socket.write('HTTP/1.1 429 Wait\r\nRetry-After: 5\r\nretry-after: 90\r\ncontent-length: 0\r\n\r\n'),
    )
    expect((await send(`${receiver.http}/429-twice`)).value).toEqual({ status: 429, retryAfterMs: 90_000n })
  })

  it('a sender reports the time until the date in a Retry-After header', async () => {
    const now = Date.parse(retryDate) - 90_000
    const outcome = await senderWith({ now: () => now }).send(request(`${receiver.http}/429-retry-after-date`), never)
    expect(outcome.value).toEqual({ ...answered(429).value, retryAfterMs: 90_000n })
  })

  it.each(['302-to-metadata', '302-to-elsewhere', '307-to-elsewhere', '301-to-localhost'])(
    'a sender does not follow the redirect of /%s',
    async (path) => {
      const before = receiver.requests.length
      expect(await send(`${receiver.http}/${path}`)).toEqual(answered(Number(path.slice(0, 3))))
      expect(receiver.requests).toHaveLength(before + 1)
    },
  )
})

describe('senders that get a response with text', () => {
  it.each([
    ['JSON', 422, '{"error":\n  "email is missing"}\n', '{"error": "email is missing"}'],
    ['400 characters of four bytes', 500, '𝒳'.repeat(400), '𝒳'.repeat(300)],
    ['escape codes, bidirectional marks and zero bytes', 400, 'a\u001b[31mred\u202eb\0\u0085c', 'a [31mred b c'],
    ['bytes that are not UTF-8', 400, Buffer.from([0x61, 0xff, 0xfe, 0x62]), 'a\ufffd\ufffdb'],
    ['white space only', 400, ' \r\n\t', undefined],
    ['a response of an accepted request', 200, 'thanks', undefined],
  ])('a sender reports the beginning of the text: %s', async (name, status, sent, text) => {
    const path = `/text?${encodeURIComponent(name)}`
    receiver.on(path, (_request, response) => response.writeHead(status).end(sent))
    expect(await send(`${receiver.http}${path}`)).toEqual({
      case: 'response',
      value: { status, ...(text && { text }) },
    })
  })

  it('a sender reports no text of a compressed response', async () => {
    receiver.on('/compressed', (_request, response) =>
      response.writeHead(500, { 'content-encoding': 'gzip' }).end('not text'),
    )
    expect(await send(`${receiver.http}/compressed`)).toEqual(answered(500, ''))
  })

  it('a sender reports the beginning of a text that comes in small pieces', async () => {
    receiver.on('/pieces', async (_request, response) => {
      response.writeHead(502)
      for (let count = 0; count < 100; count += 1) response.write(`${count} `.repeat(150))
      response.end()
    })
    const { value } = await send(`${receiver.http}/pieces`)
    expect(value).toEqual({ status: 502, text: '0 '.repeat(150).trim() })
  })
})

describe('senders that get a large response', () => {
  it.each([
    ['100-mb', BODY],
    ['endless-200', BODY],
    ['endless-500', BODY],
    ['endless-gzip', BODY],
    ['header-flood', HEADERS],
    ['early-hints-flood', HEADERS],
    ['continue-flood', HEADERS],
    ['chunk-extension-flood', BODY],
    ['endless-chunk-extension', BODY],
    ['trailer-flood', BODY],
  ])('a sender reports that the response from /%s is too large, and reads little of it', async (path, phase) => {
    const before = receiver.bytesSent()
    const open = receiver.openConnections()
    expect(await send(`${receiver.http}/${path}`)).toEqual(failed(phase, FailureReason.RESPONSE_TOO_LARGE))
    await until('the connection to be closed', () => receiver.openConnections() <= open)
    // The receiver sends more than the limit, because the kernel and both processes buffer data.
    expect(receiver.bytesSent() - before).toBeLessThan(20 * 1024 * 1024)
  })

  it('a sender counts every byte of a response: 65,536 are accepted, and one more is too many', async () => {
    const interim = 'HTTP/1.1 103 Early Hints\r\nlink: </>\r\n\r\n'
    const bytes = (path: string, size: number) => {
      const head = `${interim}HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8000;x=1\r\n`
      const end = '\r\n0\r\nx-trailer: '
      const trailer = 'x'.repeat(size - head.length - 0x8000 - end.length - 4)
      receiver.on(path, ({ socket }) => socket.write(`${head}${'x'.repeat(0x8000)}${end}${trailer}\r\n\r\n`))
      return request(`${receiver.http}${path}`)
    }
    const sender = senderWith()
    expect(await sender.send(bytes('/limit', 65_536), never)).toEqual(answered(200))
    expect(sender.idleConnections()).toBe(1)
    expect(await sender.send(bytes('/beyond', 65_537), never)).toEqual(failed(BODY, FailureReason.RESPONSE_TOO_LARGE))
  })
})

describe('senders whose attempt fails', () => {
  it.each([
    ['reset-in-headers', HEADERS, FailureReason.CONNECTION_RESET],
    ['close-without-a-word', HEADERS, FailureReason.CONNECTION_RESET],
    ['close-in-headers', HEADERS, FailureReason.CONNECTION_RESET],
    ['reset-in-body', BODY, FailureReason.CONNECTION_RESET],
    ['close-in-body', BODY, FailureReason.CONNECTION_RESET],
    ['large-head', BODY, FailureReason.PROTOCOL_ERROR],
    ['no-http', HEADERS, FailureReason.PROTOCOL_ERROR],
    ['bad-length', HEADERS, FailureReason.PROTOCOL_ERROR],
    ['two-lengths', HEADERS, FailureReason.PROTOCOL_ERROR],
    ['switch-protocols', HEADERS, FailureReason.PROTOCOL_ERROR],
    ['status-999', BODY, FailureReason.PROTOCOL_ERROR],
  ])('a sender reports the phase and the reason of a failure at /%s', async (path, phase, reason) => {
    expect(await send(`${receiver.http}/${path}`)).toEqual(failed(phase, reason))
  })

  it.each([
    ['wrong-name', FailureReason.CERTIFICATE_INVALID],
    ['expired', FailureReason.CERTIFICATE_INVALID],
    ['self-signed', FailureReason.CERTIFICATE_INVALID],
    ['reset-in-tls', FailureReason.CONNECTION_RESET],
  ])('a sender reports the TLS failure %s', async (name, reason) => {
    expect(await send(`${receiver.https(name)}/200`)).toEqual(failed(TLS, reason))
    expect(receiver.requests.some(({ headers }) => headers.host?.startsWith(name))).toBe(false)
  })

  it('a sender reports a certificate of an unknown authority, and a server without TLS', async () => {
    const strict = senderWith({ ca: undefined })
    expect(await strict.send(request(`${receiver.https('good')}/200`), never)).toEqual(
      failed(TLS, FailureReason.CERTIFICATE_INVALID),
    )
    const plain = `https://good.receiver.example:${receiver.port}/200`
    expect(await send(plain)).toEqual(failed(TLS, FailureReason.TLS_FAILED))
  })

  it('a sender reports a refused connection', async () => {
    const gone = await startReceiver()
    await gone.close()
    expect(await send(`${gone.http}/200`)).toEqual(failed(CONNECT, FailureReason.CONNECTION_REFUSED))
    const both = senderWith({ lookup: named('127.0.0.2', '127.0.0.3') })
    expect(await both.send(request(`http://two.example:${gone.port}/200`), never)).toEqual(
      failed(CONNECT, FailureReason.CONNECTION_REFUSED),
    )
  })

  it('a sender reports whether a name does not exist or its lookup failed', async () => {
    const lookups: [NameError | Error, FailureReason][] = [
      [new NameError('not_found'), FailureReason.NAME_NOT_FOUND],
      [new NameError('failed'), FailureReason.NAME_SERVICE_FAILED],
    ]
    for (const [error, reason] of lookups) {
      const sender = senderWith({ lookup: () => Promise.reject(error) })
      expect(await sender.send(request('http://crm.example/'), never)).toEqual(failed(RESOLVE, reason))
    }
  })

  it('a sender reports only a phase and a reason of a failure, and never the text of an error', async () => {
    const outcome = await senderWith({ lookup: () => Promise.reject(new Error('10.0.0.7 said no')) }).send(
      request('http://crm.example/secret'),
      never,
    )
    expect(outcome).toEqual(failed(RESOLVE, FailureReason.NETWORK_ERROR))
  })
})

describe('senders with a deadline and an abort signal', () => {
  it.each([
    ['hang', HEADERS],
    ['drip-the-head', HEADERS],
    ['hang-in-body', BODY],
    ['drip-one-byte', BODY],
  ])('a sender ends an attempt to /%s at the deadline', async (path, phase) => {
    const open = receiver.openConnections()
    expect(await send(`${receiver.http}/${path}`, { deadlineMs: 300 })).toEqual(failed(phase, FailureReason.TIMEOUT))
    await until('the connection to be closed', () => receiver.openConnections() <= open)
  })

  it('a sender ends a hanging TLS handshake at the deadline', async () => {
    const outcome = await send(`${receiver.https('hang-in-tls')}/200`, { deadlineMs: 300 })
    expect(outcome).toEqual(failed(TLS, FailureReason.TIMEOUT))
  })

  it('a sender ends a hanging name lookup and a hanging connection at the deadline', async () => {
    const resolving = senderWith({ lookup: () => new Promise(() => {}) })
    expect(await resolving.send(request('http://crm.example/', { deadlineMs: 50 }), never)).toEqual(
      failed(RESOLVE, FailureReason.TIMEOUT),
    )
    const connecting = senderWith({ dial: () => new Socket() })
    expect(await connecting.send(request('http://crm.example/', { deadlineMs: 50 }), never)).toEqual(
      failed(CONNECT, FailureReason.TIMEOUT),
    )
  })

  it('an attempt that is aborted after it was sent is reported as failed', async () => {
    const stop = new AbortController()
    const sender = senderWith()
    const seen = receiver.to('/hang').length
    const sending = sender.send(request(`${receiver.http}/hang`), stop.signal)
    await until('the request', () => receiver.to('/hang').length > seen)
    stop.abort()
    expect(await sending).toEqual(failed(HEADERS, FailureReason.NETWORK_ERROR))
  })

  it('an attempt that is aborted before it was sent is reported as `released` (not sent)', async () => {
    const stop = new AbortController()
    const connected = Promise.withResolvers<void>()
    const dial = () => {
      connected.resolve()
      return new Socket()
    }
    const sending = senderWith({ dial }).send(request('http://crm.example/'), stop.signal)
    await connected.promise
    stop.abort()
    expect(await sending).toEqual({ case: 'released', value: {} })
    expect(await senderWith().send(request(`${receiver.http}/200`), stop.signal)).toEqual({
      case: 'released',
      value: {},
    })
  })
})
