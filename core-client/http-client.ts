import { create, type DescMethod, fromBinary, isMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { codeFromHttpStatus, errorFromJsonBytes } from '@connectrpc/connect/protocol-connect'
import { type Dispatcher, Pool } from 'undici'
import { messageMaxBytes } from '../platform/message-limit.ts'
import type { TlsMaterial } from '../platform/tls/tls-files.ts'

const TYPE = 'application/proto'

export type CoreRequest = Pick<
  Dispatcher.RequestOptions,
  'path' | 'headers' | 'body' | 'signal' | 'headersTimeout' | 'bodyTimeout'
>
export type CoreAnswer = Dispatcher.ResponseData

export type HttpClient = ReturnType<typeof createHttpClient>

/** The HTTP/1.1 connections to one core, each with one call at a time. */
export function createHttpClient(baseUrl: string, material: TlsMaterial = {}) {
  const { origin, pathname } = new URL(baseUrl)
  const prefix = pathname.replace(/\/$/, '')
  let pool = open()

  function open() {
    // Callers limit their concurrent calls, and a call that waits for work must not delay others, so
    // connections are not limited here. undici closes an idle one 2 s before the core would.
    return new Pool(origin, {
      pipelining: 1,
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { timeout: 3_000, ...material },
    })
  }

  /** Makes a call in the Connect protocol. Without an answer, rejects with `unavailable`. */
  const unary: Transport['unary'] = async (method, signal, timeoutMs, header, input) => {
    if (signal?.aborted) throw cancelled()
    const body = toBinary(method.input, isMessage(input, method.input) ? input : create(method.input, input))
    if (body.length > messageMaxBytes) throw tooLarge('message')
    const headers = headersOf(header, timeoutMs)
    const path = `${prefix}/${method.parent.typeName}/${method.name}`
    const answer = await new Promise<UnaryAnswer>((resolve, reject) => {
      pool.dispatch({ path, method: 'POST', headers, body }, unaryCall(resolve, reject, signal, timeoutMs))
    })
    return decode(method, answer) as never
  }

  return {
    unary,
    /** Returns the answer, whatever its status. */
    request: ({ path, ...request }: CoreRequest): Promise<CoreAnswer> =>
      pool.request({ ...request, path: `${prefix}${path}`, method: 'POST' }),

    /** Returns false if the core is starting or stopping. */
    async probe(signal: AbortSignal) {
      const { headers, body } = await pool.request({ path: `${prefix}/livez`, method: 'GET', signal })
      await body.dump()
      return headers.connection !== 'close'
    },

    /** Closes all connections. Running calls fail with `unavailable`. The next call connects again. */
    cut() {
      const old = pool
      pool = open()
      void old.destroy(new ConnectError('core does not answer', Code.Unavailable))
    },

    /** Closes each connection after its running call. Further calls are rejected. */
    close: () => void pool.close(),
  }
}

function headersOf(header: Parameters<Transport['unary']>[3], timeoutMs: number | undefined) {
  const headers = ['content-type', TYPE, 'connect-protocol-version', '1']
  if (timeoutMs !== undefined && timeoutMs > 0) headers.push('connect-timeout-ms', `${Math.ceil(timeoutMs)}`)
  for (const [name, value] of header instanceof Headers ? header : new Headers(header)) headers.push(name, value)
  return headers
}

interface UnaryAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Uint8Array
}

/** Follows one call. Ends when the answer is complete, on cancellation or at the deadline. */
function unaryCall(
  resolve: (answer: UnaryAnswer) => void,
  reject: (error: ConnectError) => void,
  signal: AbortSignal | undefined,
  timeoutMs = 0,
): Dispatcher.DispatchHandler {
  const chunks: Buffer[] = []
  let controller: Dispatcher.DispatchController | undefined
  let failure: ConnectError | undefined
  let size = 0
  let head: Omit<UnaryAnswer, 'body'> = { status: 0, headers: {} }
  const timer = timeoutMs > 0 ? setTimeout(() => stop(expired()), timeoutMs) : undefined
  const cancel = () => stop(cancelled())
  signal?.addEventListener('abort', cancel)

  function end() {
    clearTimeout(timer)
    signal?.removeEventListener('abort', cancel)
  }

  /** Ends the call here, and in the core by closing the connection. */
  function stop(error: ConnectError) {
    failure = error
    end()
    reject(error)
    controller?.abort(error)
  }

  return {
    onRequestStart(started) {
      controller = started
      if (failure) started.abort(failure)
    },
    onResponseStart(_controller, status, headers) {
      head = { status, headers }
    },
    onResponseData(_controller, chunk) {
      size += chunk.length
      if (size > messageMaxBytes) stop(tooLarge('answer'))
      else chunks.push(chunk)
    },
    onResponseEnd() {
      if (failure) return
      end()
      const [first] = chunks
      resolve({ ...head, body: chunks.length === 1 && first ? first : Buffer.concat(chunks) })
    },
    onResponseError(_controller, error) {
      if (failure) return
      end()
      reject(error instanceof ConnectError ? error : noAnswer(error))
    },
  }
}

function decode(method: DescMethod, { status, headers, body }: UnaryAnswer) {
  const type = headers['content-type']
  if (status === 200 && type === TYPE) {
    return {
      stream: false,
      service: method.parent,
      method,
      get header() {
        return webHeaders(headers)
      },
      trailer: new Headers(),
      message: decodeMessage(method.output, body),
    }
  }
  // A server that is not a core, or a proxy before it.
  const fallback = new ConnectError(`HTTP ${status}`, status === 200 ? Code.Unknown : codeFromHttpStatus(status))
  if (status === 200 || type !== 'application/json') throw fallback
  throw errorFromJsonBytes(body, webHeaders(headers), fallback)
}

function decodeMessage(output: DescMethod['output'], body: Uint8Array): MessageInitShape<DescMethod['output']> {
  try {
    return fromBinary(output, body)
  } catch (error) {
    throw noAnswer(error as Error)
  }
}

function webHeaders(headers: UnaryAnswer['headers']) {
  const found = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    for (const each of [value ?? []].flat()) found.append(name, each)
  }
  return found
}

const cancelled = () => new ConnectError('the call was cancelled', Code.Canceled)
const expired = () => new ConnectError('the deadline has passed', Code.DeadlineExceeded)
const tooLarge = (what: string) => new ConnectError(`the ${what} is too large`, Code.ResourceExhausted)
const noAnswer = (cause: Error) =>
  new ConnectError('the core did not answer', Code.Unavailable, undefined, undefined, cause)
