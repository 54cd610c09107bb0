import type { FastifyBaseLogger } from 'fastify'
import type { CorePool } from '../core-client/core-pool.ts'
import type { Config } from './config.ts'
import type { GatewayMetrics } from './metrics.ts'

/** Time and timers. Tests replace them. */
export type Clock = typeof systemClock

export const systemClock = {
  /** Milliseconds since 1970. */
  now: () => Date.now(),
  /** Runs every `ms` until the returned function is called. */
  every(ms: number, run: () => void): () => void {
    const timer = setInterval(run, ms).unref()
    return () => clearInterval(timer)
  },
  /** Runs once after `ms`, unless the returned function is called first. */
  after(ms: number, run: () => void): () => void {
    const timer = setTimeout(run, ms).unref()
    return () => clearTimeout(timer)
  },
}

/** The object of a gateway process. The functions of a gateway take it first, or find it at the server of a request. */
export class Gateway {
  config!: Config
  cores!: CorePool
  logger!: FastifyBaseLogger
  metrics!: GatewayMetrics
  clock!: Clock
  random!: () => number
  /** A copy of a gateway has no parts, so this private field makes a copy a type error. */
  readonly #parts = new Map<unknown, unknown>()

  constructor(fields: Omit<Gateway, 'part' | 'setPart'>) {
    Object.assign(this, fields)
  }

  part<T>(key: unknown, make: (gateway: Gateway) => T): T {
    if (!this.#parts.has(key)) this.#parts.set(key, make(this))
    return this.#parts.get(key) as T
  }

  setPart(key: unknown, part: unknown): void {
    this.#parts.set(key, part)
  }
}

declare module 'fastify' {
  interface FastifyInstance {
    gateway: Gateway
  }
}

/**
 * Returns a function that returns a part of a gateway, such as a cache. A gateway makes its part at the
 * first call. `set` replaces the part before the first call.
 */
export function perGateway<T>(make: (gateway: Gateway) => T) {
  const of = (gateway: Gateway): T => gateway.part(of, make)
  return Object.assign(of, { set: (gateway: Gateway, part: T) => gateway.setPart(of, part) })
}
