import { setTimeout as delay } from 'node:timers/promises'
import { type Db, MongoClient } from 'mongodb'
import { failOnClosedSockets } from '../../core/database/closed-sockets.ts'
import type { DeliveryDocument } from '../../core/deliveries/model.ts'
import type { EventDocument } from '../../core/log/event-store.ts'
import type { ReplicaSet } from '../replica-set/replica-set.ts'
import { startReceiver } from '../support/receiver.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { check, checkRecovery, type Violation } from './checker.ts'
import type { ClientContext } from './client-context.ts'
import { type FaultName, faults } from './faults.ts'
import { missingInFeed } from './feed-checker.ts'
import { readFeed } from './feed-readers.ts'
import { growAnswers } from './growing-answers.ts'
import { createRecorder, type Entry, type Recorder } from './history.ts'
import { captureLeads, prepareLeads, reportTooLate } from './leads.ts'
import { checkMajorityReads } from './majority-reads.ts'
import { answerVisitors } from './operators.ts'
import { createRandom, type Random } from './random.ts'
import { readRecords } from './records.ts'
import { revokeSessions } from './revocations.ts'
import { schedule } from './schedule.ts'
import { isReady, type Service, startService } from './service.ts'
import { deleteSites } from './sites.ts'
import { leaveAnswersUnread } from './unread-answers.ts'
import { type ChaosVisitor, visit } from './visitors.ts'
import { withdrawMessages } from './withdrawals.ts'

export interface RunOptions {
  seed: number
  /** Half of the visitors start immediately, the others within this number of seconds. */
  arrivalSeconds: number
  visitors: number
  /** Default: 2. */
  cores?: number
  say: (line: string) => void
  /** Folder of the source that the service starts with. Default: this checkout. */
  root?: string
  /** Database to use instead of an engine of this run. */
  database?: TestDatabase
  /** The replica set of `database`, if it is simulated. */
  replicaSet?: ReplicaSet
}

export interface Report {
  /** Number of messages and leads that the clients sent. */
  operations: number
  /** Number of history entries by kind. */
  observations: Partial<Record<Entry['kind'], number>>
  violations: Violation[]
  /** Folder with the logs and the database. Kept if a guarantee was broken. */
  folder?: string
}

/**
 * Time in milliseconds without progress after which an operation counts as stuck. The time counts
 * after the faults have ended.
 */
const stuckAfterMs = 30_000

/** How far the clocks of the cores are moved at the end. */
const aheadMs = 120_000

export interface ChaosReport extends Report {
  /** How often each fault was caused. */
  faults: Partial<Record<FaultName, number>>
}

/** Runs clients while faults happen, and checks the guarantees. */
export async function runChaos({
  seconds,
  ...options
}: Omit<RunOptions, 'arrivalSeconds'> & { seconds: number; faults: readonly FaultName[] }): Promise<ChaosReport> {
  const faultCounts: ChaosReport['faults'] = {}
  const report = await runWith({ ...options, arrivalSeconds: seconds * 0.8 }, async (service, random, recorder) => {
    const began = performance.now()
    const elapsed = () => performance.now() - began
    const endsAt = seconds * 1000
    for (const step of schedule(options.faults, random)) {
      await delay(Math.max(0, Math.min(step.afterMs, endsAt - elapsed())))
      if (elapsed() >= endsAt) return
      const at = `${(elapsed() / 1000).toFixed(1)} s`.padStart(8)
      const what = await Promise.all(
        step.faults.map(async ({ name, ...how }) => {
          faultCounts[name] = (faultCounts[name] ?? 0) + 1
          return `${await faults[name](service, { ...how, recorder })} (${how.lastsMs} ms)`
        }),
      )
      options.say(`${at}  ${what.join(', ')}`)
    }
  })
  return { ...report, faults: faultCounts }
}

/** Runs clients until `disturb` has ended and the service has recovered. Then checks the guarantees. */
export async function runWith(
  { seed, arrivalSeconds, visitors: visitorCount, cores, say, root, database, replicaSet }: RunOptions,
  disturb: (service: Service, random: Random, recorder: Recorder) => Promise<void>,
): Promise<Report> {
  const random = createRandom(seed)
  // Faults have their own random generator, so that the same seed causes the same faults, no matter
  // how many random numbers the clients use.
  const [faultRandom, clientRandom] = [createRandom(random.between(0, 1e9)), createRandom(random.between(0, 1e9))]
  const service = await startService({
    chance: clientRandom.next,
    ...(cores && { cores }),
    database,
    replicaSet,
    ...(root !== undefined && { root }),
  })
  const receiver = await startReceiver()
  // Faults kill the engine, and a client of the driver as it is may then never find it again.
  failOnClosedSockets()
  const client = new MongoClient(service.engine.uri)
  const db = client.db(service.engine.database)
  const [draining, stopped] = [new AbortController(), new AbortController()]
  const recorder = createRecorder()
  const context: ClientContext = {
    service,
    recorder,
    random: clientRandom,
    draining: draining.signal,
    stopped: stopped.signal,
  }
  let report: Report | undefined
  try {
    const workspaceId = await prepareLeads(context, receiver)
    const visitors: ChaosVisitor[] = []
    const arrivals = Array.from({ length: visitorCount }, async (_, index) => {
      const late = index % 2 === 0 ? 0 : clientRandom.between(0, arrivalSeconds * 1000)
      await delay(late, undefined, { signal: context.draining }).catch(() => {})
      const visitor = await visit(context, `visitor-${index + 1}`)
      if (!visitor) return
      const failed = reportFailure(visitor.name)
      visitors.push({ ...visitor, sent: visitor.sent.catch(failed), followed: visitor.followed.catch(failed) })
    })
    const clients = [
      ...arrivals,
      answerVisitors(context, 'ada', () => visitors),
      answerVisitors(context, 'bob', () => visitors),
      captureLeads(context, workspaceId),
      readFeed(context, 'conversations', service.demo.workspaceId),
      readFeed(context, 'leads', workspaceId),
      revokeSessions(context, 'leaver'),
      deleteSites(context, 'site'),
      reportTooLate(context, db),
      checkMajorityReads(context, db),
      leaveAnswersUnread(context),
      withdrawMessages(context, 'withdrawer', receiver),
      ...['robo', 'automat', 'clerk'].map((bot) => growAnswers(context, bot)),
    ].map((client) => client.catch(reportFailure('a client')))
    await disturb(service, faultRandom, recorder).catch(reportFailure('the faults'))
    await waitForRecovery()
    // Without the database, only the failures can be reported.
    const records = await readRecords(db, workspaceId).catch(reportFailure('the read of the database'))
    const violations = records ? check(recorder.entries, records) : checkRecovery(recorder.entries)
    report = reportOf(recorder.entries, violations)
    if (violations.length === 0) return report
    await service.keepFolder().catch((error: Error) => say(`${service.dataDir} is incomplete: ${error.message}`))
    report.folder = service.dataDir
    return report

    /** Records an error as a guarantee that was broken, so that the run still ends with a report. */
    function reportFailure(what: string) {
      return (error: Error): undefined => {
        recorder.add({ kind: 'stuck', what: `${what} failed: ${error}` })
      }
    }

    async function waitForRecovery() {
      say('faults ended; waiting for recovery')
      const isUp = ({ name, url }: { name: string; url: string }) =>
        waitForNone(`${name} not ready`, async () => ((await isReady(url)) ? 0 : 1))
      await Promise.all([...service.gateways, ...service.cores, ...service.workers].map(isUp))
      draining.abort()
      const sending = Promise.all(clients).then(() => Promise.all(visitors.map(({ sent }) => sent)))
      // The signal ends the timer. Otherwise the timer would keep the process running.
      await Promise.race([sending, delay(stuckAfterMs, undefined, { signal: stopped.signal }).catch(() => {})])
      await waitForNone('streams behind the log', () => streamsBehind(db, visitors))
      await waitForNone('unfinished deliveries', () => openDeliveries(db, workspaceId))
      // The follower of the logs adds what dead cores left out, 90 s behind. The run does not wait for it.
      for (const core of service.cores) await core.moveClock(aheadMs)
      await waitForNone('events that readers of the feed lack', async () =>
        missingInFeed(recorder.entries, await readRecords(db, workspaceId)),
      )
      stopped.abort()
      await sending
      await Promise.all(visitors.map(({ followed }) => followed))
    }

    /**
     * Waits until no unfinished items are left. `left` returns their number. If the number does not
     * fall for `stuckAfterMs`, records a stuck operation and returns.
     */
    async function waitForNone(what: string, left: () => Promise<number>) {
      let least = Number.POSITIVE_INFINITY
      for (let since = performance.now(); ; await delay(50)) {
        const now = await left().catch(() => least)
        if (now === 0) return
        if (now < least) since = performance.now()
        least = Math.min(least, now)
        if (performance.now() - since > stuckAfterMs) {
          recorder.add({ kind: 'stuck', what: `${what}: ${now}, without progress for ${stuckAfterMs / 1000} s` })
          return
        }
      }
    }
  } finally {
    draining.abort()
    stopped.abort()
    await client.close()
    await service.stop().catch((error: Error) => report?.violations.push({ rule: 'recovered', what: error.message }))
    await receiver.close()
  }
}

async function streamsBehind(db: Db, visitors: ChaosVisitor[]): Promise<number> {
  const events = db.collection<EventDocument>('events')
  const behind = await Promise.all(
    visitors.map(async ({ conversationId, sessionId, position }) => {
      const forAll = { transient: { $exists: false }, sessionId: { $in: [sessionId, undefined] } }
      const [last] = await events
        .find({ conversationId, ...forAll })
        .sort({ sequence: -1 })
        .limit(1)
        .toArray()
      return Number((last?.sequence ?? 0) > position())
    }),
  )
  return behind.reduce((sum, each) => sum + each, 0)
}

async function openDeliveries(db: Db, workspaceId: string): Promise<number> {
  const [leads, subscriptions, ended] = await Promise.all([
    db.collection('leads').countDocuments({ workspaceId }),
    db.collection('leadSubscriptions').countDocuments({ workspaceId }),
    db
      .collection<DeliveryDocument>('deliveries')
      .countDocuments({ workspaceId, status: { $in: ['accepted', 'failed', 'dead_lettered'] } }),
  ])
  return leads * subscriptions - ended
}

function reportOf(entries: Entry[], violations: Violation[]): Report {
  const observations: Report['observations'] = {}
  for (const { kind } of entries) observations[kind] = (observations[kind] ?? 0) + 1
  const { sent = 0, lead = 0 } = observations
  return { operations: sent + lead, observations, violations }
}
