import type { Logger } from 'pino'
import type { Slots } from '../platform/concurrency/slots.ts'
import { ProcessParts, perProcess } from '../platform/process-parts.ts'
import type { Bus } from './bus.ts'
import type { CoreConfig } from './config.ts'
import type { Collections } from './database/collections.ts'
import type { Database } from './database/database.ts'
import type { Idempotency } from './idempotency/idempotency.ts'
import type { Keyring, PlannedIds } from './keys/keyring.ts'
import type { SecretBox } from './keys/secret-box.ts'
import type { CoreMetrics } from './metrics.ts'
import type { Nudge } from './wakeups/wakeup-store.ts'

/** The object of a core process. The functions of a core take it first. */
export class Core extends ProcessParts {
  config!: CoreConfig
  database!: Database
  db!: Collections
  bus!: Bus
  /** Id of the data's history (`core/database/store-history.ts`), a part of every epoch. */
  history!: string
  keyring!: Keyring
  plannedIds!: PlannedIds
  secretBox!: SecretBox
  idempotency!: Idempotency
  metrics!: CoreMetrics
  logger!: Logger
  /** Tells other cores on the same machine to read new wake-ups. */
  nudge?: Nudge
  /** HS256 keys that verify workspace sessions. */
  workspaceSessionSecrets!: Uint8Array[]
  /** Limits the concurrent paged reads of operators and services. */
  reads!: Slots
  /** Returns the milliseconds since 1970. */
  now!: () => number
  random!: () => number
  /** Aborted when the core stops. Background work then ends early. Another core, or the next start, completes it. */
  readonly closing = new AbortController()

  constructor(fields: Omit<Core, keyof ProcessParts | 'closing'>) {
    super()
    Object.assign(this, fields)
  }
}

/** Returns the present time of a core, or the time after some milliseconds. */
export const dateOf = ({ now }: Core, afterMs = 0) => new Date(now() + afterMs)

/** Returns a function that returns a part of a core: see `perProcess`. */
export const perCore = <T>(make: (core: Core) => T) => perProcess(make)
