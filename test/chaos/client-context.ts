import type { Recorder } from './history.ts'
import type { Random } from './random.ts'
import type { Service } from './service.ts'

/** Objects that all clients of a chaos run share. */
export interface ClientContext {
  service: Service
  recorder: Recorder
  random: Random
  /** Aborted when clients must start no new operation. Operations in progress continue. */
  draining: AbortSignal
  /** Aborted when clients must end their operations, too. */
  stopped: AbortSignal
}

/** Timeout of a client's call, in milliseconds. */
export const callTimeoutMs = 4_000
