import type { FastifyBaseLogger } from 'fastify'
import type { CorePool } from '../core-client/core-pool.ts'
import { everyTicks } from '../platform/concurrency/ticks.ts'
import { ProcessParts, perProcess } from '../platform/process-parts.ts'
import type { Config } from './config.ts'
import type { GatewayMetrics } from './metrics.ts'

/** Time in milliseconds since 1970, and timers with functions that cancel them. Tests replace it. */
export type Clock = typeof systemClock

export const systemClock = {
  now: () => Date.now(),
  every: everyTicks,
  after(ms: number, run: () => void) {
    const timer = setTimeout(run, ms).unref()
    return () => clearTimeout(timer)
  },
}

/** The object of a gateway process. Functions take it first, or find it at the server of a request. */
export class Gateway extends ProcessParts {
  config!: Config
  cores!: CorePool
  logger!: FastifyBaseLogger
  metrics!: GatewayMetrics
  clock!: Clock
  random!: () => number

  constructor(fields: Omit<Gateway, keyof ProcessParts>) {
    super()
    Object.assign(this, fields)
  }
}

declare module 'fastify' {
  interface FastifyInstance {
    gateway: Gateway
  }
}

export const perGateway = <T>(make: (gateway: Gateway) => T) => perProcess(make)
