import { setTimeout as delay } from 'node:timers/promises'
import { createJobs } from '../concurrency/job.ts'
import { type Core, perCore } from '../core.ts'
import type { Database } from './database.ts'

/** A core does not start if its clock and the database's differ by more. */
const refusedOffsetMs = 10_000
/** A larger difference is logged. Cores rely on clocks that agree within two seconds. */
const warnedOffsetMs = 2_000

/** A ping without an answer is slow after this time. A probe waits no longer. */
const slowMs = 900
const fastMs = 500

/**
 * `slow`: commands take long and succeed. `away`: commands fail, because a ping failed, or because there is no
 * answer and no server that takes writes.
 */
type DatabaseState = 'fast' | 'slow' | 'away'

/** Returns by how many milliseconds this machine's clock is ahead of the database's. */
async function clockOffset({ ping }: Pick<Database, 'ping'>, now: () => number) {
  const before = now()
  const serverTime = await ping()
  const after = now()
  const offset = (before + after) / 2 - serverTime
  // The server read its clock at an unknown time during the call.
  return Math.sign(offset) * Math.max(0, Math.abs(offset) - (after - before) / 2)
}

/** Throws if the clocks differ too much. Does not throw if the database does not tell its time. */
export async function requireMatchingClock(database: Pick<Database, 'ping'>, now: () => number = Date.now) {
  const offset = await clockOffset(database, now).catch(() => undefined)
  if (offset === undefined) return
  if (Math.abs(offset) > refusedOffsetMs)
    throw new Error(
      `the clock of this machine is ${describe(offset)} the clock of the database; set it (NTP), then start the core again`,
    )
}

/** The first patches of MongoDB with the repairs of CVE-2025-14847 and CVE-2026-6914. */
const repairedVersions = [
  [7, 0, 32],
  [8, 0, 21],
  [8, 2, 3],
] as const

/** Whether a server of this version has known holes. Releases that are not listed must be newer than the last. */
export function hasKnownHoles(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number)
  const repaired = repairedVersions.find(([m, n]) => m === major && n === minor)
  if (repaired) return patch < repaired[2]
  return major < 8 || (major === 8 && minor < 2)
}

const historyCheckEveryMs = 15_000
const checkEveryMs = 5_000

/** Tells a slow database from one that is away, by one ping at a time. */
export const databaseCheckOf = perCore(({ database, metrics, logger, now }) => {
  let state: DatabaseState = 'fast'
  let isWarned = false
  let pinging: { since: number; ended: Promise<void> } | undefined
  metrics.databaseUp.set(1)

  function noteState(found: DatabaseState, measured: { pingMs: number; reason?: string }) {
    metrics.databaseUp.set(found === 'away' ? 0 : 1)
    metrics.databasePing.set(measured.pingMs / 1000)
    if (found === state) return
    if (found === 'away')
      logger.warn(measured, 'the database does not answer; calls fail with ServiceUnavailable until it does')
    else if (found === 'slow') logger.warn(measured, 'the database answers slowly; calls take longer and are accepted')
    else logger.info(measured, state === 'away' ? 'the database answers again' : 'the database answers fast again')
    state = found
  }

  async function ping(since: number) {
    const pingMs = () => Math.round(performance.now() - since)
    try {
      const offset = await clockOffset(database, now)
      const isSlow = pingMs() >= (state === 'slow' ? fastMs : slowMs)
      noteState(isSlow ? 'slow' : 'fast', { pingMs: pingMs() })
      metrics.clockOffset.set(offset / 1000)
      const isOff = Math.abs(offset) > warnedOffsetMs
      if (isOff && !isWarned)
        logger.warn(`the clock of this machine is ${describe(offset)} the clock of the database; set it (NTP)`)
      isWarned = isOff
    } catch (error) {
      noteState('away', { pingMs: pingMs(), reason: (error as Error).message })
    } finally {
      pinging = undefined
    }
  }

  /** Waits for the ping that is under way, or for a new one, at most 0.9 s. */
  async function check() {
    const start = performance.now()
    pinging ??= { since: start, ended: ping(start) }
    const { since, ended } = pinging
    const isAnswered = await Promise.race([ended.then(() => true), delay(slowMs, false, { ref: false })])
    if (isAnswered || state === 'away') return
    const measured = { pingMs: Math.round(performance.now() - since) }
    if (database.hasServer()) noteState('slow', measured)
    else noteState('away', { ...measured, reason: 'no server that takes writes is known' })
  }

  return {
    check,
    /** Resolves within a second. A slow database is not away. */
    async isAway() {
      await check()
      return state === 'away'
    },
  }
})

export const databaseJobs = (core: Core, onRestored: () => void) =>
  createJobs(core, {
    'check for restored data': [
      historyCheckEveryMs,
      async () => {
        if ((await core.database.currentHistory()) !== core.history) onRestored()
      },
    ],
    'check of the database': [checkEveryMs, databaseCheckOf(core).check],
  })

const describe = (offsetMs: number) =>
  `${Math.round(Math.abs(offsetMs) / 1000)} s ${offsetMs > 0 ? 'ahead of' : 'behind'}`
