import { create, type DescMethodUnary, type Message } from '@bufbuild/protobuf'
import {
  type ConnectRouter,
  type ContextValues,
  createContextValues,
  type HandlerContext,
  type Interceptor,
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
