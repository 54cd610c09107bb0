import type { IncomingMessage, ServerResponse } from 'node:http'
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { codeToHttpStatus, errorToJson } from '@connectrpc/connect/protocol-connect'
import { messageMaxBytes } from '../../platform/message-limit.ts'
import type { CountedCall } from './call-memory.ts'
import type { UnaryMethod } from './dispatcher.ts'
import { requireFewFields } from './message-fields.ts'

const type = 'application/proto'
const emptyBody = Buffer.alloc(0)

/** Whether a request has a binary message in the Connect protocol over HTTP/1.1. Connect serves the others. */
export function isPlainUnary({ httpVersionMajor, method, headers }: IncomingMessage): boolean {
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
export async function serveUnary(
  { method, run }: UnaryMethod,
  request: IncomingMessage,
  response: ServerResponse,
  { memory, shutdown }: { memory: CountedCall; shutdown: AbortSignal },
) {
  const timeout = request.headers['connect-timeout-ms']
  const timeoutMs = timeout === undefined ? undefined : Number(timeout)
  const abort = createAbort({ response, shutdown, timeoutMs })
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
function createAbort({
  response,
  shutdown,
  timeoutMs,
}: {
  response: ServerResponse
  shutdown: AbortSignal
  timeoutMs: number | undefined
}) {
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
      if (timeoutMs !== undefined && timeoutMs > 0) timer = setTimeout(expire, timeoutMs)
      return controller.signal
    },
    end() {
      clearTimeout(timer)
      shutdown.removeEventListener('abort', stop)
      response.off('close', leave)
    },
  }
}

export const tooLarge = () => new ConnectError('the message is too large', Code.ResourceExhausted)
