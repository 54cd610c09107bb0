import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import type { DescMessage, DescMethod } from '@bufbuild/protobuf'
import { Code, ConnectError, type ConnectRouter, createContextValues } from '@connectrpc/connect'
import { pipe, transformJoinEnvelopes, transformSplitEnvelope } from '@connectrpc/connect/protocol'
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node'
import type { Logger } from 'pino'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { messageMaxBytes } from '../../platform/message-limit.ts'
import { ServiceError } from '../errors.ts'
import type { Caller } from '../workspaces/access.ts'
import { abortResponse, type CallMemory, type CountedCall, type Response } from './call-memory.ts'
import { type Authenticate, authenticationKey } from './caller.ts'
import type { UnaryMethod } from './dispatcher.ts'
import { noteToken } from './http2-sessions.ts'
import { checkJsonRequest } from './json-requests.ts'
import { requireFewFields, requireFewValues } from './message-fields.ts'
import { isPlainUnary, serveUnary, tooLarge } from './unary-handler.ts'

/** The flags and the length before a message in gRPC and gRPC-Web. */
const prefixBytes = 5

type Request = IncomingMessage | Http2ServerRequest
type UniversalRequest = ReturnType<typeof universalRequestFromNodeRequest>

/**
 * Plain unary calls take a short way (unary-handler.ts), others Connect's handlers. Where a response cannot
 * be written, for example because the protocol cannot encode an error text, Connect's adapter leaves the
 * caller waiting and prints the request. This closes the connection.
 */
export function createNodeHandler(options: {
  authenticate: Authenticate
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
        return await serveUnary(unary, request as IncomingMessage, response as ServerResponse, {
          memory: call,
          shutdown,
        })
      }
      const universal = universalRequestFromNodeRequest(request, response, undefined, values)
      const limited = unary ? counted(universal, handler.method, call) : countedStream(universal, handler.method, call)
      const answer = await handler(checkJsonRequest(handler.method, limited))
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
    (error: unknown) => !(error instanceof ServiceError && error.code === ErrorCode.UNAUTHENTICATED),
  )

/** Limits the message of a unary call, which is passed on as a whole. */
function counted(request: UniversalRequest, { input }: DescMethod, call: CountedCall) {
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
    requireFewParts(input, type, type.startsWith('application/grpc') ? bytes.subarray(prefixBytes) : bytes)
    yield bytes
  }
  return { ...request, body: read() } as UniversalRequest
}

/** Limits the bytes of a stream's messages that have not arrived completely. */
function countedStream(request: UniversalRequest, { input }: DescMethod, call: CountedCall) {
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
        call.release(message.data.length + prefixBytes)
        yield message
      }
    },
    transformJoinEnvelopes(),
  )
  return { ...request, body } as UniversalRequest
}

function requireFewParts(input: DescMessage, contentType: string, bytes: Uint8Array) {
  if (contentType.includes('json')) requireFewValues(bytes)
  else requireFewFields(input, bytes)
}
