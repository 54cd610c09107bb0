import { on } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { GatewayError, invalid } from '../errors.ts'

const DROPPED_BODY_FACTOR = 4
const DROP_DEADLINE_MS = 5_000
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Accepts only JSON bodies: at most `BODY_LIMIT_BYTES`, UTF-8, without `__proto__`. An empty body
 * needs no content type.
 */
export function acceptJsonBodies(app: FastifyInstance) {
  const bodyLimit = app.gateway.config.BODY_LIMIT_BYTES
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer', bodyLimit }, (request, bytes, done) => {
    let text: string
    try {
      text = utf8.decode(bytes)
    } catch {
      return done(invalid('', 'json'))
    }
    const { schema, config } = request.routeOptions
    if (text === '' && (schema?.body === undefined || config.bodyOptional)) return done(null, undefined)
    parse(request, text, (failure, body) => (failure ? done(invalid('', 'json')) : done(null, body)))
  })
  app.addContentTypeParser('*', (_request, payload: IncomingMessage, done) => {
    void isEmptyBody(payload).then((isEmpty) => done(isEmpty ? null : new GatewayError('UnsupportedMediaType')))
  })
}

/** Whether a request has no body. Waits for the first byte or the end of a chunked body. */
export async function isEmptyBody(payload: IncomingMessage): Promise<boolean> {
  const { 'content-length': length, 'transfer-encoding': encoding } = payload.headers
  if (encoding === undefined) return Number(length ?? 0) === 0
  while (payload.readableLength === 0 && !payload.readableEnded && !payload.destroyed) {
    if (payload.complete) return true
    await new Promise<void>((resolve) => {
      const onChange = () => {
        payload.off('readable', onChange).off('end', onChange).off('close', onChange)
        resolve()
      }
      payload.on('readable', onChange).on('end', onChange).on('close', onChange)
    })
  }
  return payload.readableLength === 0
}

/**
 * Reads and discards the rest of a rejected request, up to four times the limit; a reset connection could
 * lose the answer. Returns whether it was read to its end. If not, close the connection after the answer.
 */
export function dropBody(payload: IncomingMessage, limit: number): Promise<boolean> {
  const { 'content-length': length, 'transfer-encoding': encoding } = payload.headers
  if (length === undefined && encoding === undefined) return Promise.resolve(true)
  if (payload.complete || payload.destroyed) return Promise.resolve(payload.complete)
  return new Promise((resolve) => {
    let left = limit * DROPPED_BODY_FACTOR
    const deadline = setTimeout(() => finish(false), DROP_DEADLINE_MS)
    const onData = (chunk: Buffer) => {
      left -= chunk.length
      if (left < 0) finish(false)
    }
    const onEnd = () => finish(payload.complete)
    const finish = (whole: boolean) => {
      clearTimeout(deadline)
      payload.off('data', onData).off('end', onEnd).off('close', onEnd).off('error', onEnd)
      if (!whole) payload.pause()
      resolve(whole)
    }
    payload.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onEnd)
    payload.resume()
  })
}

const CHUNKS_BUFFERED_MAX = 8

/**
 * Streams a body of at most `limit` bytes, with backpressure. Reading never throws: check `isWhole` and
 * `failure` after the last chunk. After `stop`, `dropBody` can discard the rest.
 */
export function readChunks(payload: IncomingMessage, limit: number) {
  const stopping = new AbortController()
  let failure: GatewayError | undefined
  let whole = false
  let size = 0

  async function* chunks(): AsyncGenerator<Uint8Array> {
    if (payload.destroyed && !payload.complete) {
      failure = invalid('', 'http')
      return
    }
    const options = {
      signal: stopping.signal,
      close: ['end', 'close'],
      highWaterMark: CHUNKS_BUFFERED_MAX,
      lowWaterMark: 1,
    }
    try {
      for await (const [chunk] of on(payload, 'data', options) as AsyncIterable<[Buffer]>) {
        size += chunk.length
        if (size > limit) {
          failure = new GatewayError('PayloadTooLarge')
          return
        }
        yield chunk
      }
      whole = payload.complete
    } catch {
      // The client disconnected, or `stop` was called.
    }
    if (!whole && !stopping.signal.aborted) failure = invalid('', 'http')
  }

  return { chunks: chunks(), isWhole: () => whole, failure: () => failure, stop: () => stopping.abort() }
}
