import { on } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { GatewayError } from './errors.ts'

const DROPPED_BODY_FACTOR = 4
const DROP_DEADLINE_MS = 5_000
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Makes JSON the only body that is read: at most `limit` bytes, UTF-8, no `__proto__`. An empty one needs no type. */
export function acceptJsonBodies(app: FastifyInstance, limit: number): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', (request, payload: IncomingMessage, done) => {
    readBody(payload, limit, (error, bytes) => {
      if (error !== null) return done(error)
      let text: string
      try {
        text = utf8.decode(bytes)
      } catch {
        return done(brokenJson())
      }
      if (text === '' && request.routeOptions.schema?.body === undefined) return done(null, undefined)
      parse(request, text, (failure, body) => (failure ? done(brokenJson()) : done(null, body)))
    })
  })
  app.addContentTypeParser('*', (_request, payload: IncomingMessage, done) => {
    void isEmptyBody(payload).then((isEmpty) => done(isEmpty ? null : new GatewayError('UnsupportedMediaType')))
  })
}

/** Whether a request has no body. Of a body in chunks, waits for the first byte, the end or the loss of the connection. */
export async function isEmptyBody(payload: IncomingMessage): Promise<boolean> {
  const { 'content-length': length, 'transfer-encoding': encoding } = payload.headers
  if (encoding === undefined) return Number(length ?? 0) === 0
  while (payload.readableLength === 0 && !payload.readableEnded && !payload.destroyed) {
    if (payload.complete) return true
    await new Promise<void>((resolve) => {
      const settle = () => {
        payload.off('readable', settle).off('end', settle).off('close', settle)
        resolve()
      }
      payload.on('readable', settle).on('end', settle).on('close', settle)
    })
  }
  return payload.readableLength === 0
}

/**
 * Reads and drops what a refused request has still to send, so that the answer is read and not lost in a reset: up to
 * four times the bound.
 *
 * @returns whether the request came to its end; if not, the connection is to be closed after the answer
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

/** Chunks that may wait for whoever takes them. */
const CHUNKS_WAITING = 8

/**
 * A body as it arrives, for a route that does not read it whole: at most `limit` bytes, and no faster than it is taken.
 * The chunks just stop where something is wrong with it; `isWhole` and `failure` tell. `stop` lets go of it, so that the
 * rest can be dropped.
 */
export function readChunks(payload: IncomingMessage, limit: number) {
  const stopping = new AbortController()
  let failure: GatewayError | undefined
  let whole = false
  let size = 0

  async function* chunks(): AsyncGenerator<Uint8Array> {
    if (payload.destroyed && !payload.complete) {
      failure = brokenOff()
      return
    }
    const options = { signal: stopping.signal, close: ['end', 'close'], highWaterMark: CHUNKS_WAITING, lowWaterMark: 1 }
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
      // Broken off, or nobody wants the rest.
    }
    if (!whole && !stopping.signal.aborted) failure = brokenOff()
  }

  return { chunks: chunks(), isWhole: () => whole, failure: () => failure, stop: () => stopping.abort() }
}

/** A body as a whole, at most `limit` bytes. Errors: `PayloadTooLarge`, `ValidationFailed` where it breaks off. */
export function readBody(
  payload: IncomingMessage,
  limit: number,
  done: (error: Error | null, bytes: Buffer | undefined) => void,
): void {
  const chunks: Buffer[] = []
  let size = 0
  const stop = (error: Error | null, bytes?: Buffer) => {
    payload.off('data', onData).off('end', onEnd).off('error', onError)
    done(error, bytes)
  }
  const onData = (chunk: Buffer) => {
    size += chunk.length
    if (size <= limit) return void chunks.push(chunk)
    payload.pause()
    stop(new GatewayError('PayloadTooLarge'))
  }
  const onEnd = () => stop(null, Buffer.concat(chunks, size))
  const onError = () => stop(brokenJson())
  if (Number(payload.headers['content-length']) > limit) done(new GatewayError('PayloadTooLarge'), undefined)
  else payload.on('data', onData).on('end', onEnd).on('error', onError)
}

const brokenOff = () => new GatewayError('ValidationFailed', { issues: [{ path: '', rule: 'http' }] })
const brokenJson = () => new GatewayError('ValidationFailed', { issues: [{ path: '', rule: 'json' }] })
