import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from 'mongodb'
import { createLeases } from '../mongodb/leases.ts'

const id = 'migrations'
const leaseMs = 15_000
const renewEveryMs = 5_000
const retryEveryMs = 100
const reportEveryMs = 5_000

/** Called every five seconds of the wait, with the name of the process that has the lock. */
export type OnWait = (holder: string) => void

/** A lock in one document. Its work must be repeatable: if a process dies, the next holder starts the work again. */
export function createMigrationLock(db: Db, now: () => number, onWait: OnWait = () => {}) {
  const locks = db.collection<{ _id: string; by?: string }>('locks')
  const by = `process ${process.pid} on ${hostname()}`
  const leases = createLeases(locks, { until: 'until', token: 'holder' })
  const until = () => new Date(now() + leaseMs)

  async function take() {
    for (let waitedMs = 0; ; waitedMs += retryEveryMs) {
      const taken = await leases.take({ now: new Date(now()), until: until() }, { _id: id }, { by })
      const lease = taken?.lease ?? (await leases.insert({ _id: id, by }, until()))
      if (lease) return lease
      if (waitedMs % reportEveryMs === 0) onWait((await locks.findOne({ _id: id }))?.by ?? 'another process')
      await delay(retryEveryMs)
    }
  }

  return {
    /** Waits for the lock, and runs work under it. `check` throws if the lock was lost. */
    async holding(work: (check: () => Promise<void>) => Promise<void>) {
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
