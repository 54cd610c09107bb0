import type { Logger } from 'pino'
import type { Bus } from './bus.ts'
import type { CoreConfig } from './config.ts'
import type { Idempotency } from './idempotency/idempotency.ts'
import type { Keyring, PlannedIds } from './keys/keyring.ts'
import type { SecretBox } from './keys/secret-box.ts'
import type { CoreMetrics } from './metrics.ts'

/** Dependencies that all modules of the core share. */
export interface CoreKit {
  config: CoreConfig
  bus: Bus
  /** Id of the data's history (`core/database/store-history.ts`). A part of every epoch. */
  history: string
  keyring: Keyring
  plannedIds: PlannedIds
  secretBox: SecretBox
  idempotency: Idempotency
  metrics: CoreMetrics
  logger: Logger
  /** Returns the time in milliseconds since 1970. */
  now: () => number
  /** Returns a random number from 0 to less than 1. */
  random: () => number
}
