import { randomBytes } from 'node:crypto'
import type { TestDatabase } from '../support/test-database.ts'

const uri = 'TEST_MONGODB_URI'
const name = 'TEST_MONGODB_DATABASE'

/**
 * Whether the test database simulates a replica set, instead of being the engine itself.
 * Example: `TEST_REPLICA_SET=set npm test -- core/database`.
 */
export function isSimulated(): boolean {
  const kind = process.env.TEST_REPLICA_SET
  if (kind === undefined || kind === 'set') return kind === 'set'
  throw new Error('TEST_REPLICA_SET must be `set`')
}

/** Returns the URI of the database of `npm run verify -- cluster`, or undefined in other runs. */
export const clusterUri = (): string | undefined => process.env[uri]

/** Returns the database for a chaos run of `npm run verify -- cluster`, or undefined in other runs. */
export function chaosDatabase(): TestDatabase | undefined {
  const found = process.env[uri]
  return found === undefined ? undefined : { uri: found, name: process.env[name] ?? 'service-chaos' }
}

/** Returns the settings with which cores use the database of `npm run verify -- cluster`. Empty in other runs. */
export function clusterSettings(): Record<string, string> {
  const database = chaosDatabase()
  if (!database) return {}
  // Each core of a bench begins with an empty database.
  return { MONGODB_URI: database.uri, MONGODB_DATABASE: `${database.name}-${randomBytes(4).toString('hex')}` }
}

/**
 * Returns the URI of a simulated database or `MONGODB_URI`, and passes it with the name of a database to
 * processes that start from now on.
 */
export function takeClusterUri(database: string, simulated?: string): string | undefined {
  const MONGODB_URI = simulated ?? process.env.MONGODB_URI
  if (MONGODB_URI === undefined || MONGODB_URI === '') return undefined
  process.env[uri] = MONGODB_URI
  process.env[name] = database
  // The tests set the database of each part themselves.
  delete process.env.MONGODB_URI
  return MONGODB_URI
}
