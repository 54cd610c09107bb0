import { type IdPrefix, plannedId } from '../ids.ts'
import { type Keyring, keyedHash } from './keyring.ts'

/** The id of what an operation makes: the same one whenever the operation runs again. */
export type PlannedIds = (prefix: IdPrefix, operation: string) => string

export function createPlannedIds(keyring: Keyring): PlannedIds {
  return (prefix, operation) => plannedId(prefix, keyedHash(keyring.current('planned-id').key, prefix, operation))
}
