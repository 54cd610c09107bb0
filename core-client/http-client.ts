import { create, type DescMethod, fromBinary, isMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { codeFromHttpStatus, errorFromJsonBytes } from '@connectrpc/connect/protocol-connect'
import { type Dispatcher, Pool } from 'undici'
import { messageMaxBytes } from '../platform/message-limit.ts'
import type { TlsMaterial } from '../platform/tls/tls-files.ts'

const CONNECT_TIMEOUT_MS = 3_000
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
      connect: { timeout: CONNECT_TIMEOUT_MS, ...material },
    })
  }

  /** In the Connect protocol. Without an answer, rejects with `unavailable`. */
  const unary: Transport['unary'] = async (method, signal, timeoutMs, header, input) => {
    if (signal?.aborted) throw cancelled()
    const body = toBinary(method.input, isMessage(input, method.input) ? input : create(method.input, input))
    if (body.length > messageMaxBytes) throw tooLarge('message')
    const headers = headersOf(header, timeoutMs)
    const answer = await new Promise<UnaryAnswer>((resolve, reject) => {
      const call = new UnaryCall({ resolve, reject, signal, timeoutMs })
      pool.dispatch({ path: `${prefix}/${method.parent.typeName}/${method.name}`, method: 'POST', headers, body }, call)
    })
    return decode(method, answer) as never
  }

  return {
    unary,
    /** Returns the answer, whatever its status. */
    request: ({ path, ...request }: CoreRequest): Promise<CoreAnswer> =>
      pool.request({ ...request, path: `${prefix}${path}`, method: 'POST' }),

    /** False if the core is starting or stopping. */
    async probe(signal: AbortSignal) {
      const { headers, body } = await pool.request({ path: `${prefix}/livez`, method: 'GET', signal })
      await body.dump()
      return headers.connection !== 'close'
    },

    /** Running calls fail with `unavailable`. The next call connects again. */
    cut() {
      const old = pool
      pool = open()
      void old.destroy(new ConnectError('core does not answer', Code.Unavailable))
    },

    /** Each connection after its running call. Further calls are rejected. */
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

interface Waiting {
  resolve(answer: UnaryAnswer): void
  reject(error: ConnectError): void
  signal: AbortSignal | undefined
  timeoutMs: number | undefined
}

/** Ends when the answer is complete, on cancellation or at the deadline. */
class UnaryCall implements Dispatcher.DispatchHandler {
  readonly #waiting: Waiting
  readonly #timer: NodeJS.Timeout | undefined
  readonly #chunks: Buffer[] = []
  #controller: Dispatcher.DispatchController | undefined
  #failure: ConnectError | undefined
  #size = 0
  #status = 0
  #headers: UnaryAnswer['headers'] = {}

  constructor(waiting: Waiting) {
    this.#waiting = waiting
    const { signal, timeoutMs } = waiting
    if (timeoutMs !== undefined && timeoutMs > 0) this.#timer = setTimeout(() => this.#stop(expired()), timeoutMs)
    signal?.addEventListener('abort', this.#onAbort)
  }

  readonly #onAbort = () => this.#stop(cancelled())

  /** Ends the call here, and in the core by closing the connection. */
  #stop(error: ConnectError) {
    this.#failure = error
    this.#end()
    this.#waiting.reject(error)
    this.#controller?.abort(error)
  }

  #end() {
    clearTimeout(this.#timer)
    this.#waiting.signal?.removeEventListener('abort', this.#onAbort)
  }

  onRequestStart(controller: Dispatcher.DispatchController) {
    this.#controller = controller
    if (this.#failure) controller.abort(this.#failure)
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: UnaryAnswer['headers']) {
    this.#status = status
    this.#headers = headers
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer) {
    this.#size += chunk.length
    if (this.#size > messageMaxBytes) this.#stop(tooLarge('answer'))
    else this.#chunks.push(chunk)
  }

  onResponseEnd() {
    if (this.#failure) return
    this.#end()
    const [first] = this.#chunks
    const body = this.#chunks.length === 1 && first ? first : Buffer.concat(this.#chunks)
    this.#waiting.resolve({ status: this.#status, headers: this.#headers, body })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error) {
    if (this.#failure) return
    this.#end()
    this.#waiting.reject(error instanceof ConnectError ? error : noAnswer(error))
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
