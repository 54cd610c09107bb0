import { create, type DescMethodUnary, type Message } from '@bufbuild/protobuf'
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ContextValues,
  createContextValues,
  type HandlerContext,
  type Interceptor,
  type Transport,
  type UnaryRequest,
  type UnaryResponse,
} from '@connectrpc/connect'
import type { CallGate } from './call-gate.ts'

export interface UnaryMethod {
  method: DescMethodUnary
  run(call: CallInput): Promise<Message>
}

interface CallInput {
  header: Headers
  timeoutMs?: number
  /** Reads and decodes the request, after the gate has allowed the call. */
  message(): Message | Promise<Message>
  /** Returns a signal that is aborted when the caller cancels. */
  signal(): AbortSignal
}

/** Calls unary methods without Connect's handlers, through the same gate and interceptors. */
export function createDispatcher(
  register: (router: ConnectRouter) => void,
  { gate, interceptors }: { gate: CallGate; interceptors: readonly Interceptor[] },
): (name: string) => UnaryMethod | undefined {
  const methods = new Map<string, UnaryMethod>()

  function add(method: DescMethodUnary, implementation: UnaryImplementation) {
    const respond = async (request: UnaryRequest): Promise<UnaryResponse> => ({
      stream: false,
      service: method.parent,
      method,
      header: new Headers(),
      trailer: new Headers(),
      message: create(method.output, await implementation(request.message, request as UnaryCall)),
    })
    const invoke = interceptors.reduceRight((next, interceptor) => interceptor(next as never) as never, respond)
    methods.set(`${method.parent.typeName}/${method.name}`, {
      method,
      async run(input) {
        const call = new UnaryCall(method, input)
        const leave = await gate.admit(call)
        try {
          call.message = await input.message()
          return (await invoke(call)).message
        } finally {
          leave()
        }
      },
    })
  }

  const router: ConnectRouter = {
    handlers: [],
    service(service, implementation) {
      const given = implementation as Record<string, UnaryImplementation | undefined>
      for (const method of service.methods) {
        const found = given[method.localName]
        if (method.methodKind === 'unary' && found) add(method as DescMethodUnary, found.bind(implementation))
      }
      return router
    },
    rpc() {
      throw new Error('services are registered as a whole')
    },
  }
  register(router)
  return (name) => methods.get(name)
}

type UnaryImplementation = (request: Message, context: HandlerContext) => Promise<Message> | Message

/** A call, for interceptors as a `UnaryRequest`, for services as a `HandlerContext`. */
class UnaryCall implements UnaryRequest, HandlerContext {
  readonly stream = false
  readonly protocolName = 'connect'
  readonly requestMethod = 'POST'
  readonly responseHeader = new Headers()
  readonly responseTrailer = new Headers()
  readonly contextValues: ContextValues = createContextValues()
  readonly method: DescMethodUnary
  readonly #input: CallInput
  message!: Message

  constructor(method: DescMethodUnary, input: CallInput) {
    this.method = method
    this.#input = input
  }

  get service() {
    return this.method.parent
  }
  get url() {
    return `/${this.method.parent.typeName}/${this.method.name}`
  }
  get header() {
    return this.#input.header
  }
  get requestHeader() {
    return this.#input.header
  }
  get values() {
    return this.contextValues
  }
  get signal() {
    return this.#input.signal()
  }
  timeoutMs() {
    return this.#input.timeoutMs
  }
}

/** A transport for callers in the core's own process. Unary calls are function calls. */
export function localTransport(find: (name: string) => UnaryMethod | undefined, streams: Transport): Transport {
  return {
    stream: (...call) => streams.stream(...call),

    async unary(method, signal, timeoutMs, header, input) {
      const found = find(`${method.parent.typeName}/${method.name}`)
      if (!found) throw new ConnectError('unknown method', Code.Unimplemented)
      const ending = new AbortController()
      const stopped = Promise.withResolvers<never>()
      const stop = (error: ConnectError) => {
        ending.abort(error)
        stopped.reject(error)
      }
      const cancel = () => stop(new ConnectError('the call was cancelled', Code.Canceled))
      const expire = () => stop(new ConnectError('the deadline has passed', Code.DeadlineExceeded))
      const timer = timeoutMs !== undefined && timeoutMs > 0 ? setTimeout(expire, timeoutMs) : undefined
      signal?.addEventListener('abort', cancel)
      if (signal?.aborted) cancel()
      const running = found.run({
        header: new Headers(header),
        timeoutMs,
        message: () => create(method.input, input),
        signal: () => ending.signal,
      })
      try {
        const message = await Promise.race([running, stopped.promise])
        const service = method.parent
        return { stream: false, service, method, header: new Headers(), trailer: new Headers(), message } as never
      } finally {
        clearTimeout(timer)
        signal?.removeEventListener('abort', cancel)
      }
    },
  }
}
