import type { FastifyBaseLogger, FastifyInstance } from 'fastify'

type Bindings = Parameters<FastifyBaseLogger['child']>[0]
type ChildOptions = Parameters<FastifyBaseLogger['child']>[1]

const METHODS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/**
 * Logger of a request. Creates its child logger when the request writes its first line. Most
 * requests write no line, and creating the child logger costs more than all checks of a request.
 */
class RequestLog {
  readonly #parent: FastifyBaseLogger
  readonly #bindings: Bindings
  readonly #options: ChildOptions
  #own: FastifyBaseLogger | undefined

  constructor(parent: FastifyBaseLogger, bindings: Bindings, options: ChildOptions) {
    this.#parent = parent
    this.#bindings = bindings
    this.#options = options
  }

  get own(): FastifyBaseLogger {
    this.#own ??= this.#parent.child(this.#bindings, this.#options)
    return this.#own
  }

  get level(): string {
    return this.own.level
  }

  child(...given: Parameters<FastifyBaseLogger['child']>) {
    return this.own.child(...given)
  }

  static {
    for (const method of METHODS) {
      Object.defineProperty(RequestLog.prototype, method, {
        value(this: RequestLog, ...line: Parameters<FastifyBaseLogger['info']>) {
          this.own[method](...line)
        },
      })
    }
  }
}

/** Makes the child loggers of requests on demand. */
export function deferRequestLogs(app: FastifyInstance) {
  app.setChildLoggerFactory(
    (logger, bindings, options) => new RequestLog(logger, bindings, options) as unknown as FastifyBaseLogger,
  )
}
