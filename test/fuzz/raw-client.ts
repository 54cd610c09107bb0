import { connect } from 'node:net'

/** An HTTP request that may have repeated headers, wrong lengths and invalid bytes. */
export interface RawRequest {
  method: string
  target: string
  headers: [name: string, value: string][]
  body?: Uint8Array
}

export interface RawAnswer {
  status: number
  headers: Headers
  body: Buffer
  /** Bytes that followed the response on the same connection. */
  rest: Buffer
}

/** Thrown if no complete response arrives within the timeout. */
export class NoAnswer extends Error {}

const answerWithinMs = 60_000
/** How long an event stream is read after its first bytes, in milliseconds. */
const streamReadMs = 100
const headEnd = Buffer.from('\r\n\r\n')

/** Encodes a request. Adds `Host`, `Connection: close`, and `Content-Length` if there is none. */
export function bytesOf({ method, target, headers, body }: RawRequest): Buffer {
  const hasFraming = headers.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name))
  const all = [
    ['Host', 'gateway.test'],
    ['Connection', 'close'],
    ...headers,
    ...(body === undefined || hasFraming ? [] : [['Content-Length', String(body.length)]]),
  ]
  const head = [`${method} ${target} HTTP/1.1`, ...all.map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n')
  return Buffer.concat([Buffer.from(head, 'latin1'), body ?? Buffer.alloc(0)])
}

/**
 * Sends bytes on a new connection and reads the first response. If the response is an event stream,
 * reads only its first bytes.
 *
 * @throws NoAnswer, or the connection's error if the connection is reset before an answer arrives
 */
export function sendRaw(url: string, bytes: Uint8Array): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    const chunks: Buffer[] = []
    const deadline = setTimeout(() => {
      reject(new NoAnswer(`no answer within ${answerWithinMs / 1000} s`))
      socket.destroy()
    }, answerWithinMs)
    let isFinished = false
    let streamTimer: NodeJS.Timeout | undefined
    function finish() {
      if (isFinished) return
      isFinished = true
      clearTimeout(deadline)
      socket.destroy()
      const answer = parseAnswer(Buffer.concat(chunks))
      if (answer === undefined) reject(new NoAnswer('the connection ended without an answer'))
      else resolve(answer)
    }
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      if (streamTimer === undefined && isStream(chunks)) streamTimer = setTimeout(finish, streamReadMs)
    })
    socket.on('end', finish)
    socket.on('error', (error) => (chunks.length > 0 ? finish() : reject(error)))
    socket.on('close', () => clearTimeout(deadline))
    socket.write(bytes)
  })
}

/** Returns true if the headers announce an event stream. The server does not end an event stream. */
const isStream = (chunks: Buffer[]) =>
  /^content-type: text\/event-stream/im.test(Buffer.concat(chunks).toString('latin1', 0, 4096))

function parseAnswer(bytes: Buffer): RawAnswer | undefined {
  const end = bytes.indexOf(headEnd)
  if (end < 0) return undefined
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? 0)
  const payload = bytes.subarray(end + headEnd.length)
  // This is the interim response to `Expect: 100-continue`. The final response follows.
  if (status === 100) return parseAnswer(payload)
  const headers = new Headers(
    lines.map((line): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
  )
  if (/chunked/i.test(headers.get('transfer-encoding') ?? '')) return { status, headers, ...unchunk(payload) }
  const length = headers.get('content-length')
  const size = length === null ? payload.length : Number(length)
  return { status, headers, body: payload.subarray(0, size), rest: payload.subarray(size) }
}

function unchunk(payload: Buffer): { body: Buffer; rest: Buffer } {
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = payload.indexOf('\r\n', at)
    if (lineEnd < 0) return { body: Buffer.concat(parts), rest: Buffer.alloc(0) }
    const size = Number.parseInt(payload.toString('latin1', at, lineEnd), 16)
    at = lineEnd + 2
    if (size === 0) return { body: Buffer.concat(parts), rest: payload.subarray(at + 2) }
    parts.push(payload.subarray(at, at + size))
    at += size + 2
  }
}
