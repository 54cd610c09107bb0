import type { Logger } from 'pino'
import type { CoreMetrics } from '../metrics.ts'
import type { Database } from './database.ts'

/** Difference between the clocks of a core and its database at which the core does not start. */
const refusedOffsetMs = 10_000
/** Difference at which the core logs a warning. Cores rely on clocks that agree within two seconds. */
const warnedOffsetMs = 2_000

type Pinged = Pick<Database, 'ping'>

/** Returns by how many milliseconds this machine's clock is ahead of the database's. */
async function clockOffset({ ping }: Pinged, now: () => number): Promise<number> {
  const before = now()
  const serverTime = await ping()
  const after = now()
  const offset = (before + after) / 2 - serverTime
  // The server read its clock at an unknown time during the call.
  return Math.sign(offset) * Math.max(0, Math.abs(offset) - (after - before) / 2)
}

/** Number of times that a starting core asks a slow database for its clock. Then it starts without. */
const clockTries = 5

/** Throws if the clock of this machine differs from the database's by more than ten seconds. */
export async function requireMatchingClock(database: Pinged, now: () => number = Date.now): Promise<void> {
  let offset: number | undefined
  for (let tries = 0; tries < clockTries && offset === undefined; tries++)
    offset = await clockOffset(database, now).catch(() => undefined)
  if (offset === undefined) return
  if (Math.abs(offset) > refusedOffsetMs)
    throw new Error(
      `the clock of this machine is ${describe(offset)} the clock of the database; set it (NTP), then start the core again`,
    )
}

/** Returns a job that checks whether the database answers, and how much its clock differs. */
export function createDatabaseCheck(options: {
  database: Pinged
  metrics: Pick<CoreMetrics, 'databaseUp' | 'clockOffset'>
  logger: Pick<Logger, 'warn' | 'info'>
  now: () => number
}): () => Promise<void> {
  const { database, metrics, logger, now } = options
  let isUp = true
  let isWarned = false
  metrics.databaseUp.set(1)

  function noteState(found: boolean, reason?: string) {
    metrics.databaseUp.set(found ? 1 : 0)
    if (found !== isUp) {
      if (found) logger.info('the database answers again')
      else logger.warn({ reason }, 'the database does not answer; calls fail with ServiceUnavailable until it does')
    }
    isUp = found
  }

  return async () => {
    try {
      const offset = await clockOffset(database, now)
      noteState(true)
      metrics.clockOffset.set(offset / 1000)
      const isOff = Math.abs(offset) > warnedOffsetMs
      if (isOff && !isWarned)
        logger.warn(`the clock of this machine is ${describe(offset)} the clock of the database; set it (NTP)`)
      isWarned = isOff
    } catch (error) {
      noteState(false, (error as Error).message)
    }
  }
}

const describe = (offsetMs: number) =>
  `${Math.round(Math.abs(offsetMs) / 1000)} s ${offsetMs > 0 ? 'ahead of' : 'behind'}`
