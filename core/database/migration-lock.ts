import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import { isDuplicateKey } from './faults.ts'

export interface MigrationLock {
  /** Runs work while nobody else does; waits for whoever is first. */
  holding(work: () => Promise<void>): Promise<void>
  /** Errors: throws when the lock was lost, since it had not been renewed for its lease. */
  check(): Promise<void>
}

interface LockDocument {
  _id: 'migrations'
  holder: string
  until: Date
}

/** Without word for so long its holder is taken to be dead, in milliseconds. */
const leaseMs = 15_000
const renewEveryMs = 5_000
const lookEveryMs = 100

/** One document, and whoever has it migrates. The work must bear being begun again by the next holder. */
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
      // There is one whose time is not over.
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
      while (!(await take())) await delay(lookEveryMs)
      const renewal = setInterval(() => void renew().catch(() => {}), renewEveryMs)
      try {
        await work()
      } finally {
        clearInterval(renewal)
        await locks.deleteOne(mine)
      }
    },

    async check() {
      if (!(await renew())) throw new Error('another process has taken the migration over')
    },
  }
}
