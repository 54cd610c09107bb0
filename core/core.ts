import type { Logger } from 'pino'
import type { Slots } from '../platform/concurrency/slots.ts'
import type { Bus } from './bus.ts'
import type { CoreConfig } from './config.ts'
import type { CoreContext } from './context.ts'
import type { Collections } from './database/collections.ts'
import type { Database } from './database/database.ts'
import type { IsAllowedDestination } from './deliveries/destination-check.ts'
import type { Idempotency } from './idempotency/idempotency.ts'
import type { Keyring, PlannedIds } from './keys/keyring.ts'
import type { SecretBox } from './keys/secret-box.ts'
import type { CoreMetrics } from './metrics.ts'
import type { Nudge } from './wakeups/wakeup-store.ts'

/** The object of a core process. The functions of a core take it first. */
export class Core {
  config!: CoreConfig
  database!: Database
  /** The collections by name. */
  db!: Collections
  bus!: Bus
  /** Id of the data's history (`core/database/store-history.ts`). A part of every epoch. */
  history!: string
  keyring!: Keyring
  plannedIds!: PlannedIds
  secretBox!: SecretBox
  idempotency!: Idempotency
  metrics!: CoreMetrics
  logger!: Logger
  /** Tells other cores on the same machine to read new wake-ups. */
  nudge?: Nudge
  /** Whether leads may be sent to a destination. */
  isAllowedDestination!: IsAllowedDestination
  /** HS256 keys that verify the tokens of workspace sessions. */
  workspaceSessionSecrets!: Uint8Array[]
  /** Gives places to the paged reads of operators and services. */
  reads!: Slots
  /** Returns the time in milliseconds since 1970. */
  now!: () => number
  /** Returns a random number from 0 to less than 1. */
  random!: () => number
  /** A copy of a core has no parts, so this private field makes a copy a type error. */
  readonly #parts = new Map<unknown, unknown>()

  constructor(fields: Omit<Core, 'part' | 'setPart'>) {
    Object.assign(this, fields)
  }

  part<T>(key: unknown, make: (core: Core) => T): T {
    if (!this.#parts.has(key)) this.#parts.set(key, make(this))
    return this.#parts.get(key) as T
  }

  setPart(key: unknown, part: unknown): void {
    this.#parts.set(key, part)
  }
}

/**
 * Returns a function that returns a part of a core, such as a cache. A core makes its part at the
 * first call. `set` replaces the part before the first call.
 */
export function perCore<T>(make: (core: Core) => T) {
  const of = (core: Core): T => core.part(of, make)
  return Object.assign(of, { set: (core: Core, part: T) => core.setPart(of, part) })
}

/** Returns the rooms that are not files of functions yet. */
export const contextOf = (core: Core) => core as CoreContext
