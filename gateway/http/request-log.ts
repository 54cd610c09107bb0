import type { FastifyBaseLogger, FastifyInstance } from 'fastify'

const METHODS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent', 'child'] as const

/**
 * The logger of a request. Its child logger is made with the first line. Most requests write none, and a
 * child logger costs more than all checks of a request.
 */
class RequestLog {
  readonly #make: () => FastifyBaseLogger
  #own: FastifyBaseLogger | undefined

  constructor(make: () => FastifyBaseLogger) {
    this.#make = make
  }

  get own() {
    this.#own ??= this.#make()
    return this.#own
  }

  get level() {
    return this.own.level
  }

  static {
    for (const method of METHODS) {
      Object.defineProperty(RequestLog.prototype, method, {
        value(this: RequestLog, ...line: [never]) {
          return this.own[method](...line)
        },
      })
    }
  }
}

export function deferRequestLogs(app: FastifyInstance) {
  app.setChildLoggerFactory(
    (logger, ...child) => new RequestLog(() => logger.child(child[0], child[1])) as unknown as FastifyBaseLogger,
  )
}
