import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import { createLeases, type Lease } from '../mongodb/leases.ts'

interface MigrationLock {
  /**
   * Waits until no other process holds the lock, and runs work under the lock. `check` throws if the
   * lock was lost because its lease expired.
   */
  holding(work: (check: () => Promise<void>) => Promise<void>): Promise<void>
}

const id = 'migrations'
const leaseMs = 15_000
const renewEveryMs = 5_000
const retryEveryMs = 100

/**
 * Creates a lock that is stored in one document. The work must be repeatable: if its process dies,
 * the next holder of the lock starts the work again.
 */
export function createMigrationLock(db: Db, now: () => number): MigrationLock {
  const leases = createLeases(db.collection<{ _id: string }>('locks'), { until: 'until', token: 'holder' })
  const until = () => new Date(now() + leaseMs)

  async function take(): Promise<Lease> {
    for (;;) {
      const taken = await leases.take({ now: new Date(now()), until: until() }, { _id: id })
      const lease = taken?.lease ?? (await leases.insert({ _id: id }, until()))
      if (lease) return lease
      await delay(retryEveryMs)
    }
  }

  return {
    async holding(work) {
      const lease = await take()
      const check = async () => void (await leases.write(lease, { $set: { until: until() } }))
      const renewal = setInterval(() => void check().catch(() => {}), renewEveryMs)
      try {
        await work(check)
      } finally {
        clearInterval(renewal)
        await leases.remove(lease)
      }
    },
  }
}
