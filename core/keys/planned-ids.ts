import { type IdPrefix, plannedId } from '../ids.ts'
import { type Keyring, keyedHash } from './keyring.ts'

/** The id of the object that an operation makes. Every run of the operation gets the same id. */
export type PlannedIds = (prefix: IdPrefix, operation: string) => string

export function createPlannedIds(keyring: Keyring): PlannedIds {
  return (prefix, operation) => plannedId(prefix, keyedHash(keyring.current('planned-id').key, prefix, operation))
}
