import http, { type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'
import { connectionLost, ProtocolError, ResponseTooLargeError } from './failures.ts'

interface WholeAnswer {
  status: number
  headers: Record<string, string[] | undefined>
  /** Beginning of the body of an answer that is not 2xx, in pieces. */
  beginning: Buffer[]
  /** Whether the connection can carry another request. */
  isReusable: boolean
}

/** The worker sets these headers from URL and body, and drops the values of the core. */
const ownHeaders = new Set(['host', 'content-length', 'connection', 'transfer-encoding', 'expect', 'upgrade'])

/** Bytes of an answer that are kept. 300 characters have at most 1,200. */
const keptBytes = 1_200
/** Maximum size of the names and values in a head. */
const headMaxBytes = 16 * 1024

/**
 * Sends one POST, and resolves with the complete answer. Drops interim answers (1xx), asked for or not.
 * Counts every byte. Errors: `ResponseTooLargeError` above `maxBytes`; `ProtocolError` and the parser's
 * errors if it is not HTTP; the reason of the signal; the socket's errors.
 */
export function readAnswer(
  socket: Socket,
  options: {
    url: URL
    request: Pick<ClaimedDelivery, 'headers' | 'body'>
    signal: AbortSignal
    maxBytes: number
    onHeaders: () => void
  },
): Promise<WholeAnswer> {
  const { url, request, signal, maxBytes, onHeaders } = options
  return new Promise((resolve, reject) => {
    if (socket.destroyed) return reject(connectionLost())
    let answer: IncomingMessage | undefined
    let received = 0
    const beginning: Buffer[] = []

    const count = (chunk: Buffer) => {
      received += chunk.length
      if (received > maxBytes) fail(new ResponseTooLargeError())
    }
    // Counts before the parser, whose listener is added later.
    socket.on('data', count)
    const abort = () => fail(signal.reason)
    const close = () => fail(connectionLost())
    signal.addEventListener('abort', abort)
    socket.on('close', close)

    const sending = http.request({
      createConnection: () => socket,
      method: 'POST',
      path: url.pathname + url.search,
      headers: headersOf(url, request),
      maxHeaderSize: maxBytes,
      insecureHTTPParser: false,
    })
    // Without an agent, Node would close the connection after the answer.
    sending.shouldKeepAlive = true

    const stop = () => {
      signal.removeEventListener('abort', abort)
      socket.off('data', count).off('close', close)
    }
    const fail = (error: Error) => {
      // Bytes after a complete answer are a fault of the connection only.
      if (answer?.complete && !signal.aborted) return
      stop()
      reject(error)
      socket.destroy()
    }

    sending.on('error', fail)
    sending.on('upgrade', () => fail(new ProtocolError('protocol switched without a request')))
    sending.on('response', (response) => {
      answer = response
      onHeaders()
      const { statusCode: status = 0, headersDistinct: headers, rawHeaders } = response
      if (status < 200 || status > 599) return fail(new ProtocolError('invalid HTTP status'))
      if (rawHeaders.reduce((size, { length }) => size + length, 0) > headMaxBytes)
        return fail(new ProtocolError('head too large'))
      let size = 0
      response.on('data', (chunk: Buffer) => {
        if (status >= 300 && size < keptBytes) beginning.push(chunk)
        size += chunk.length
      })
      response.on('error', fail)
      response.on('end', () => {
        stop()
        resolve({ status, headers, beginning, isReusable: sending.writableFinished && socket.writable })
      })
    })
    sending.end(request.body)
  })
}

/** Alternating names and values: Node adds none to this form. */
function headersOf({ host }: URL, { headers, body }: Pick<ClaimedDelivery, 'headers' | 'body'>) {
  return [
    ...['host', host, 'connection', 'keep-alive', 'content-length', String(body.length)],
    ...Object.entries(headers).flatMap((header) => (ownHeaders.has(header[0].toLowerCase()) ? [] : header)),
  ]
}
