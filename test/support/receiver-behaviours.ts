import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { TLSSocket } from 'node:tls'

/** Responds to a request. The receiver calls it after it has received the complete request. */
export type Behaviour = (request: IncomingMessage, response: ServerResponse) => unknown

const dripMs = 5
const hundredMegabytes = 100 * 1024 * 1024
const chunk = Buffer.alloc(64 * 1024, 'x')
/** A date in the far future, in the HTTP date format. */
export const retryDate = 'Fri, 31 Dec 2100 23:59:59 GMT'

const answer = (status: number, headers: Record<string, string> = {}): Behaviour => {
  return (_request, response) => response.writeHead(status, headers).end('{"received":true}')
}

/** Returns a behaviour that writes raw bytes to the connection instead of using Node's HTTP server. */
const raw = (write: (socket: Socket) => void): Behaviour => {
  return ({ socket }) => write(socket)
}

/** Writes the text repeatedly until the connection closes. Waits when the send buffer is full. */
function repeat(socket: Socket, text: string | Buffer, everyMs = 0): void {
  if (socket.destroyed) return
  const next = () =>
    everyMs > 0 ? setTimeout(() => repeat(socket, text, everyMs), everyMs) : setImmediate(repeat, socket, text)
  if (socket.write(text)) next()
  else socket.once('drain', next)
}

const head = (length: number | string) => `HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n`

/**
 * Resets the TCP connection. A TLS connection is closed without close_notify instead, because Node cannot reset it.
 */
function reset(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy()
  else socket.resetAndDestroy()
}

/** Behaviours of the receiver by path. Other paths, such as `/200`, return the status in their name. */
export const behaviours: Record<string, Behaviour> = {
  '302-to-metadata': answer(302, { location: 'http://169.254.169.254/latest/meta-data/' }),
  '302-to-elsewhere': (request, response) =>
    response.writeHead(302, { location: `http://${request.headers.host}/200` }).end('{"received":true}'),
  '307-to-elsewhere': (request, response) =>
    response.writeHead(307, { location: `http://${request.headers.host}/200` }).end('{"received":true}'),
  '301-to-localhost': answer(301, { location: 'http://localhost:1/' }),
  '429-retry-after-seconds': answer(429, { 'retry-after': '120' }),
  '429-retry-after-fraction': answer(429, { 'retry-after': '1.5' }),
  '429-retry-after-date': answer(429, { 'retry-after': retryDate }),
  '429-retry-after-past': answer(429, { 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' }),
  '429-retry-after-garbage': answer(429, { 'retry-after': 'soon, please' }),
  '429-retry-after-huge': answer(429, { 'retry-after': '9'.repeat(40) }),
  '503-retry-after-seconds': answer(503, { 'retry-after': '2' }),
  'drip-one-byte': raw((socket) => {
    socket.write(head(1_000_000))
    repeat(socket, 'x', dripMs)
  }),
  'drip-the-head': raw((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nx-drip: ')
    repeat(socket, 'x', dripMs)
  }),
  '100-mb': (_request, response) => {
    response.writeHead(200, { 'content-length': hundredMegabytes })
    Readable.from(megabytes(hundredMegabytes)).pipe(response)
  },
  'endless-200': endless(200),
  'endless-500': endless(500),
  'endless-gzip': endless(200, 'content-encoding: gzip\r\n'),
  'header-flood': raw((socket) => {
    socket.write('HTTP/1.1 200 OK\r\n')
    repeat(socket, `x-flood: ${'x'.repeat(80)}\r\n`.repeat(100))
  }),
  'large-head': raw((socket) =>
    socket.write(`HTTP/1.1 200 OK\r\nx-large: ${'x'.repeat(20_480)}\r\ncontent-length: 0\r\n\r\n`),
  ),
  'chunk-extension-flood': raw((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
    repeat(socket, `1;x=${'x'.repeat(80)}\r\nx\r\n`.repeat(100))
  }),
  'endless-chunk-extension': raw((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;x=')
    repeat(socket, chunk)
  }),
  'trailer-flood': raw((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n')
    repeat(socket, `x-flood: ${'x'.repeat(80)}\r\n`.repeat(100))
  }),
  'early-hints-flood': raw((socket) => repeat(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100))),
  'continue-flood': raw((socket) => repeat(socket, 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(100))),
  'reset-in-headers': raw((socket) => reset(socket)),
  'reset-in-body': raw((socket) =>
    socket.write(`${head(1000)}only the start`, () => setImmediate(() => reset(socket))),
  ),
  'close-in-headers': raw((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-le')),
  'close-without-a-word': raw((socket) => socket.end()),
  'close-in-body': raw((socket) => socket.end(`${head(1000)}only the start`)),
  hang: () => {},
  'hang-in-body': raw((socket) => socket.write(`${head(1000)}only the start`)),
  'no-http': raw((socket) => socket.end('SSH-2.0-OpenSSH_9.2p1\r\n')),
  'bad-length': raw((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n')),
  'two-lengths': raw((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx')),
  'switch-protocols': raw((socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  ),
  'status-999': raw((socket) => socket.write('HTTP/1.1 999 Beyond\r\ncontent-length: 0\r\n\r\n')),
  '200-and-close': answer(200, { connection: 'close' }),
  /** Keeps the connection alive, then resets it on the second request. */
  '200-then-reset': (request, response) => {
    if (seen.has(request.socket)) return reset(request.socket)
    seen.add(request.socket)
    response.writeHead(200).end()
  },
  '200-and-more': raw((socket) => socket.write(`${head(2)}okHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`)),
}

const seen = new WeakSet<Socket>()

function* megabytes(length: number) {
  for (let sent = 0; sent < length; sent += chunk.length) yield chunk
}

function endless(status: number, header = ''): Behaviour {
  return raw((socket) => {
    socket.write(`HTTP/1.1 ${status} Go\r\n${header}transfer-encoding: chunked\r\n\r\n`)
    const part = Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')])
    repeat(socket, part)
  })
}
