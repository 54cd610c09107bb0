import type { Recorder } from './history.ts'
import type { Random } from './random.ts'
import type { Service } from './service.ts'

/** What everybody who takes part in a run knows. */
export interface Scene {
  service: Service
  recorder: Recorder
  random: Random
  /** Aborted when nothing new is to be begun; what is begun goes on until it is done. */
  over: AbortSignal
  /** Aborted when nobody waits for anything any more. */
  closed: AbortSignal
}

/** How long a client waits for an answer before it takes it for lost, in milliseconds. */
export const patienceMs = 4_000
