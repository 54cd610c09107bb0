import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import { isDuplicateKey } from '../mongodb/faults.ts'

interface MigrationLock {
  /** Waits until no other process holds the lock, and runs work under the lock. */
  holding(work: () => Promise<void>): Promise<void>
  /** Throws if the lock was lost because its lease expired. */
  check(): Promise<void>
}

interface LockDocument {
  _id: 'migrations'
  holder: string
  until: Date
}

/** Lease of the lock in milliseconds. When it expires, another process takes the lock. */
const leaseMs = 15_000
const renewEveryMs = 5_000
const retryEveryMs = 100

/**
 * Creates a lock that is stored in one document. The work must be repeatable: if its process dies,
 * the next holder of the lock starts the work again.
 */
export function createMigrationLock(db: Db, now: () => number): MigrationLock {
  const locks = db.collection<LockDocument>('locks')
  const holder = randomUUID()
  const mine = { _id: 'migrations' as const, holder }
  const until = () => new Date(now() + leaseMs)

  async function take(): Promise<boolean> {
    try {
      await locks.updateOne(
        { _id: 'migrations', until: { $lte: new Date(now()) } },
        { $set: { holder, until: until() } },
        { upsert: true },
      )
      return true
    } catch (error) {
      // The insert failed because another process holds an unexpired lease.
      if (isDuplicateKey(error)) return false
      throw error
    }
  }

  async function renew(): Promise<boolean> {
    const { matchedCount } = await locks.updateOne(mine, { $set: { until: until() } })
    return matchedCount === 1
  }

  return {
    async holding(work) {
      while (!(await take())) await delay(retryEveryMs)
      const renewal = setInterval(() => void renew().catch(() => {}), renewEveryMs)
      try {
        await work()
      } finally {
        clearInterval(renewal)
        await locks.deleteOne(mine)
      }
    },

    async check() {
      if (!(await renew())) throw new Error('another process has taken over the migration')
    },
  }
}
