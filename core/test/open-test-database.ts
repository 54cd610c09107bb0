import type { TestDatabase } from '../../test/support/test-database.ts'
import { type Database, openDatabase } from '../database/database.ts'

/** Databases that files of this worker have opened. Later files use their connections again. */
const opened = new Map<string, Promise<Database>>()

/**
 * Opens a test database. Cores share its connections, and to close it has no effect. Waits a minute
 * for an engine that is being started again.
 */
export async function openTestDatabase({ uri, name }: TestDatabase): Promise<Database> {
  const opening = opened.get(name) ?? open({ uri, name })
  opened.set(name, opening)
  const database = await opening
  return { ...database, history: await database.currentHistory(), close: async () => {} }
}

async function open({ uri, name }: TestDatabase): Promise<Database> {
  const until = performance.now() + 60_000
  for (;;) {
    try {
      return await openDatabase({ uri, name, timeoutMs: 5000 })
    } catch (error) {
      if ((error as Error).name !== 'MongoServerSelectionError' || performance.now() > until) throw error
    }
  }
}
