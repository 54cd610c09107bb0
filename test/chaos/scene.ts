import type { Recorder } from './history.ts'
import type { Random } from './random.ts'
import type { Service } from './service.ts'

/** Shared by all clients of a run. */
export interface Scene {
  service: Service
  recorder: Recorder
  random: Random
  /** Aborted when clients must start nothing new. Work in progress continues. */
  over: AbortSignal
  /** Aborted when clients must stop waiting. */
  closed: AbortSignal
}

/** Client timeout, in milliseconds. */
export const patienceMs = 4_000
