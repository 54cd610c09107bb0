import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { type DescMessage, type DescMethod, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Code, ConnectError, type ConnectRouter, createContextValues } from '@connectrpc/connect'
import {
  compressedFlag,
  pipe,
  transformJoinEnvelopes,
  transformSplitEnvelope,
  type UniversalServerRequest,
} from '@connectrpc/connect/protocol'
import { codeToHttpStatus, errorToJson } from '@connectrpc/connect/protocol-connect'
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node'
import type { Logger } from 'pino'
import { messageMaxBytes } from '../../platform/message-limit.ts'
import { ServiceError } from '../errors.ts'
import type { Caller } from '../workspaces/access.ts'
import type { CallGate } from './call-gate.ts'
import { abortResponse, type CallMemory, type CountedCall, type Response } from './call-memory.ts'
import { authenticationKey } from './caller.ts'
import type { UnaryMethod } from './dispatcher.ts'
import { noteToken } from './http2-sessions.ts'
import { requireKnown, withoutQuery } from './json-requests.ts'
import { requireFewFields, requireFewValues } from './message-fields.ts'

/** The flags and the length before a message in gRPC and gRPC-Web. */
const prefixBytes = 5

type Request = IncomingMessage | Http2ServerRequest

/**
 * Plain unary calls take a short way, others Connect's handlers. Where a response cannot
 * be written, for example because the protocol cannot encode an error text, Connect's adapter leaves the
 * caller waiting and prints the request. This closes the connection.
 */
export function createNodeHandler(options: {
  authenticate: CallGate['authenticate']
  router: ConnectRouter
  find: (name: string) => UnaryMethod | undefined
  memory: CallMemory
  shutdown: AbortSignal
  logger: Logger
  /** Serves every other path. */
  fallback: (request: Request, response: Response) => unknown
}) {
  const { authenticate, router, find, memory, shutdown, logger, fallback } = options
  const byPath = new Map(
    router.handlers.map((handler) => [handler.requestPath, { handler, unary: find(handler.requestPath.slice(1)) }]),
  )

  return async (request: Request, response: Response) => {
    const call = memory.open(response)
    if (call === undefined) return abortResponse(response)
    const found = byPath.get(request.url?.split('?', 1)[0] ?? '')
    if (found === undefined) return void fallback(request, response)
    const { handler, unary } = found
    const values = createContextValues()
    if ('stream' in request) {
      const { stream, headers } = request
      const caller = authenticate(handler.method, headers.authorization ?? null)
      values.set(authenticationKey, caller)
      noteToken(stream, await hasValidToken(caller))
      if (stream.destroyed) return
    }
    try {
      if (unary && isPlainUnary(request as IncomingMessage)) {
        return await serveUnary(unary, request as IncomingMessage, response as ServerResponse, call, shutdown)
      }
      const { method } = handler
      const universal = withoutQuery(method, universalRequestFromNodeRequest(request, response, undefined, values))
      const answer = await handler(unary ? counted(universal, method, call) : countedStream(universal, method, call))
      await universalResponseToNodeResponse(answer, response)
    } catch (error) {
      abortResponse(response)
      if (ConnectError.from(error).code === Code.Aborted) return
      logger.error(
        { procedure: handler.requestPath, type: (error as Error).name },
        'writing the response failed; connection closed',
      )
    }
  }
}

/** Returns false only for a missing or invalid token. */
const hasValidToken = (caller: Promise<Caller>) =>
  caller.then(
    () => true,
    (error: unknown) => !(error instanceof ServiceError && error.code === 'Unauthenticated'),
  )

/** Limits the message of a unary call, which is passed on as a whole. */
function counted(request: UniversalServerRequest, { input }: DescMethod, call: CountedCall): UniversalServerRequest {
  const { body, header } = request
  async function* read() {
    const arrived = call.expectProgress()
    const chunks: Uint8Array[] = []
    let size = 0
    try {
      for await (const chunk of body as AsyncIterable<Uint8Array>) {
        size += chunk.length
        if (size > messageMaxBytes + prefixBytes || !call.reserve(chunk.length)) throw tooLarge()
        chunks.push(chunk)
      }
    } finally {
      arrived()
    }
    const bytes = Buffer.concat(chunks)
    const type = header.get('content-type') ?? ''
    const start = type.startsWith('application/grpc') ? prefixBytes : 0
    requireFewParts(input, type, bytes.subarray(start))
    const end = start + (start > 0 && bytes.length >= start ? bytes.readUInt32BE(1) : bytes.length - start)
    // Connect refuses an envelope that is cut.
    if (start <= end && end <= bytes.length)
      requireKnownParts(input, type, bytes.subarray(start, end), start && bytes[0])
    yield bytes
  }
  return { ...request, body: read() }
}

/** Limits the bytes of a stream's messages that have not arrived completely. */
function countedStream(request: UniversalServerRequest, { input }: DescMethod, call: CountedCall) {
  const type = request.header.get('content-type') ?? ''
  async function* arriving() {
    for await (const chunk of request.body as AsyncIterable<Uint8Array>) {
      if (!call.reserve(chunk.length)) throw tooLarge()
      yield chunk
    }
  }
  const body = pipe(
    arriving(),
    transformSplitEnvelope(messageMaxBytes),
    async function* (messages) {
      for await (const message of messages) {
        requireFewParts(input, type, message.data)
        requireKnownParts(input, type, message.data, message.flags)
        call.release(message.data.length + prefixBytes)
        yield message
      }
    },
    transformJoinEnvelopes(),
  )
  return { ...request, body }
}

function requireFewParts(input: DescMessage, contentType: string, bytes: Uint8Array) {
  if (contentType.includes('json')) requireFewValues(bytes)
  else requireFewFields(input, bytes)
}

const jsonType = /^application\/((connect|grpc|grpc-web)\+)?json\s*(;|$)/i

function requireKnownParts(input: DescMessage, contentType: string, bytes: Uint8Array, flags = 0) {
  if (jsonType.test(contentType) && (flags & compressedFlag) === 0) requireKnown(input, bytes)
}

const type = 'application/proto'
const emptyBody = Buffer.alloc(0)

/** Whether a request has a binary message in the Connect protocol over HTTP/1.1. Connect serves the others. */
function isPlainUnary({ httpVersionMajor, method, headers }: IncomingMessage): boolean {
  const timeout = headers['connect-timeout-ms']
  return (
    httpVersionMajor === 1 &&
    method === 'POST' &&
    headers['content-type'] === type &&
    (headers['content-encoding'] ?? 'identity') === 'identity' &&
    (timeout === undefined || /^\d{1,9}$/.test(timeout as string))
  )
}

/**
 * Answers a call like Connect's own handler, with a fraction of its cost, for gateways, workers and
 * cores. `shutdown` ends calls that wait for work.
 */
async function serveUnary(
  { method, run }: UnaryMethod,
  request: IncomingMessage,
  response: ServerResponse,
  memory: CountedCall,
  shutdown: AbortSignal,
) {
  const timeout = request.headers['connect-timeout-ms']
  const timeoutMs = timeout === undefined ? undefined : Number(timeout)
  const abort = createAbort(response, shutdown, timeoutMs)
  let bytes: Uint8Array
  let error: ConnectError | undefined
  try {
    const message = await run({
      header: headersOf(request),
      timeoutMs,
      message: async () => decode(method, await readBody(request, memory)),
      signal: abort.signal,
    })
    bytes = toBinary(method.output, message)
    if (bytes.length > messageMaxBytes) throw tooLarge()
  } catch (reason) {
    error = reason instanceof ConnectError ? reason : new ConnectError('internal error', Code.Internal)
    bytes = Buffer.from(JSON.stringify(errorToJson(error, undefined)))
  }
  abort.end()
  if (response.destroyed) return
  response.writeHead(error ? codeToHttpStatus(error.code) : 200, {
    'content-type': error ? 'application/json' : type,
    'content-length': bytes.length,
  })
  response.end(bytes)
}

function headersOf({ headers }: IncomingMessage) {
  const found = new Headers()
  for (const name in headers) found.set(name, String(headers[name]))
  return found
}

function decode({ input }: UnaryMethod['method'], bytes: Uint8Array) {
  requireFewFields(input, bytes)
  try {
    return fromBinary(input, bytes)
  } catch {
    throw new ConnectError('the request cannot be decoded', Code.InvalidArgument)
  }
}

function readBody(request: IncomingMessage, memory: CountedCall): Promise<Uint8Array> {
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > messageMaxBytes) return Promise.reject(tooLarge())
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const arrived = request.complete ? undefined : memory.expectProgress()
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= messageMaxBytes && memory.reserve(chunk.length)) return void chunks.push(chunk)
      request.removeAllListeners('data')
      reject(tooLarge())
    })
    request.once('end', () => {
      arrived?.()
      resolve(chunks.length === 1 ? chunks[0]! : chunks.length === 0 ? emptyBody : Buffer.concat(chunks))
    })
    request.once('close', () => {
      if (!request.complete) reject(new ConnectError('the caller closed the connection', Code.Canceled))
    })
  })
}

/** Creates the signal when a service asks for it. Most never do. */
function createAbort(response: ServerResponse, shutdown: AbortSignal, timeoutMs = 0) {
  let controller: AbortController | undefined
  let timer: NodeJS.Timeout | undefined
  const stop = () => controller?.abort(new ConnectError('the core is stopping', Code.Unavailable))
  const leave = () => controller?.abort(new ConnectError('the caller closed the connection', Code.Canceled))
  const expire = () => controller?.abort(new ConnectError('the deadline has passed', Code.DeadlineExceeded))
  return {
    signal() {
      if (controller) return controller.signal
      controller = new AbortController()
      if (shutdown.aborted) stop()
      if (response.destroyed) leave()
      shutdown.addEventListener('abort', stop)
      response.once('close', leave)
      if (timeoutMs > 0) timer = setTimeout(expire, timeoutMs)
      return controller.signal
    },
    end() {
      clearTimeout(timer)
      shutdown.removeEventListener('abort', stop)
      response.off('close', leave)
    },
  }
}

const tooLarge = () => new ConnectError('the message is too large', Code.ResourceExhausted)
