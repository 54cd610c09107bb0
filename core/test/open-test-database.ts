import type { TestDatabase } from '../../test/support/test-database.ts'
import { type Database, openDatabase } from '../database/database.ts'

/** Opens a test database. Waits a minute for an engine that is being started again. */
export async function openTestDatabase({ uri, name }: TestDatabase): Promise<Database> {
  const until = performance.now() + 60_000
  for (;;) {
    try {
      return await openDatabase({ uri, name, timeoutMs: 5000 })
    } catch (error) {
      if ((error as Error).name !== 'MongoServerSelectionError' || performance.now() > until) throw error
    }
  }
}
