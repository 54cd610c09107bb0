import { setTimeout as delay } from 'node:timers/promises'
import { Long, MongoClient } from 'mongodb'
import { until } from '../support/until.ts'
import type { Recorder } from './history.ts'
import { changePolicy, policyNames } from './policies.ts'
import { repeatBan } from './repeated-bans.ts'
import { restoreBackup } from './restores.ts'
import type { Core, Part, Service } from './service.ts'
import { setFaults } from './set-faults.ts'

/**
 * Causes a fault and repairs it. The random number `draw` selects the affected process. Resolves
 * with a description after the repair.
 */
type Fault = (service: Service, how: { lastsMs: number; draw: number; recorder: Recorder }) => Promise<string>

const selectFrom = <T>(from: T[], draw: number): T => from[draw % from.length]!

/** The latest fault of each process. A later fault of the same process waits until the earlier one has ended. */
const turns = new Map<string, Promise<unknown>>()
async function inTurn<T>(name: string, run: () => Promise<T>): Promise<T> {
  const turn = (turns.get(name) ?? Promise.resolve()).then(run)
  turns.set(
    name,
    turn.catch(() => {}),
  )
  return turn
}

async function killAndRestart(part: Part, lastsMs: number): Promise<string> {
  return inTurn(part.name, async () => {
    await part.kill()
    await delay(lastsMs)
    await part.start()
    return `${part.name} killed`
  })
}

/** Suspends a process and resumes it later. This simulates a machine that swaps or migrates. */
async function suspend(part: Part, lastsMs: number): Promise<string> {
  return inTurn(part.name, async () => {
    part.signal('SIGSTOP')
    await delay(lastsMs)
    part.signal('SIGCONT')
    return `${part.name} stopped`
  })
}

/** Breaks the connections between a core and its callers, and allows them again later. */
async function breakCallers(
  cores: Core[],
  { draw, lastsMs }: { draw: number; lastsMs: number },
  what: string,
  breakConnections: (core: Core) => void,
): Promise<string> {
  const core = selectFrom(cores, draw)
  breakConnections(core)
  await delay(lastsMs)
  core.callers.mend()
  return `${core.name} ${what}`
}

/**
 * Maximum time of an answer, in milliseconds. It exceeds the deadline of a gateway's call, because
 * a suspended gateway answers after this deadline.
 */
const answeredWithinMs = 20_000
const hourMs = 3_600_000
/** Maximum allowed clock difference between cores (docs/operating.md). */
const coreSkewMs = 2_000

export const faults = {
  'gateway-killed': ({ gateways }, { draw, lastsMs }) => killAndRestart(selectFrom(gateways, draw), lastsMs),
  'gateway-stopped': ({ gateways }, { draw, lastsMs }) => suspend(selectFrom(gateways, draw), lastsMs),
  'core-killed': ({ cores }, { draw, lastsMs }) => killAndRestart(selectFrom(cores, draw), lastsMs),
  'core-stopped': ({ cores }, { draw, lastsMs }) => suspend(selectFrom(cores, draw), lastsMs),
  'worker-killed': ({ workers }, { draw, lastsMs }) => killAndRestart(selectFrom(workers, draw), lastsMs),
  'worker-stopped': ({ workers }, { draw, lastsMs }) => suspend(selectFrom(workers, draw), lastsMs),

  async 'engine-killed'({ engine }) {
    engine.kill()
    return 'engine killed'
  },

  async 'engine-stopped'({ engine }, { lastsMs }) {
    return inTurn('engine', async () => {
      engine.signal('SIGSTOP')
      await delay(lastsMs)
      engine.signal('SIGCONT')
      return 'engine stopped'
    })
  },

  async 'engine-cut'({ cores }, { draw, lastsMs }) {
    const { name, proxy } = selectFrom(cores, draw)
    proxy.cut()
    await delay(lastsMs)
    proxy.mend()
    return `${name} cut off from the engine`
  },

  async 'engine-slow'({ cores }, { draw, lastsMs }) {
    const { name, proxy } = selectFrom(cores, draw)
    proxy.slow(20 + (draw % 200))
    await delay(lastsMs)
    proxy.mend()
    return `${name} slowed to the engine`
  },

  async 'cursor-killed'({ engine, cores }, { draw }) {
    const { name, proxy } = selectFrom(cores, draw)
    const cursor = proxy.cursors().at(-1)
    if (cursor === undefined) return `${name} has no cursor to kill`
    const client = new MongoClient(engine.uri, { serverSelectionTimeoutMS: 1_000 })
    try {
      await client.db(engine.database).command({ killCursors: 'wakeups', cursors: [Long.fromBigInt(cursor)] })
    } catch {
      return `the engine is down, and with it ${name}'s cursor`
    } finally {
      await client.close()
    }
    return `${name}'s tailable cursor killed`
  },

  async 'clock-moved'({ gateways, cores, workers }, { draw, lastsMs }) {
    const part = selectFrom<Part>([...gateways, ...cores, ...workers], draw)
    const most = cores.some(({ name }) => name === part.name) ? coreSkewMs : hourMs
    const ms = draw % 2 === 0 ? most : -most
    return inTurn(`clock of ${part.name}`, async () => {
      await part.moveClock(ms)
      await delay(lastsMs)
      await part.moveClock(0)
      return `clock of ${part.name} moved by ${ms / 1000} s`
    })
  },

  /** Makes the members of a replica set elect another primary. */
  async 'primary-stepped-down'({ engine }, { lastsMs }) {
    const client = new MongoClient(engine.uri, { serverSelectionTimeoutMS: 30_000 })
    try {
      const admin = client.db('admin')
      const before = await admin.command({ hello: 1 })
      if (before.setName === undefined) return 'no election: the database is not a replica set'
      const seconds = Math.ceil(lastsMs / 1000) + 5
      // The primary closes its connections, so a lost answer is no failure.
      await admin.command({ replSetStepDown: seconds, secondaryCatchUpPeriodSecs: 4 }).catch(() => {})
      const after = await until('another primary', () =>
        admin.command({ hello: 1 }, { readPreference: 'primary' }).catch(() => undefined),
      )
      return `${before.primary} stepped down; the primary is ${after.primary}`
    } finally {
      await client.close()
    }
  },

  async 'disk-full'({ engine }, { lastsMs }) {
    if (!engine.hasOwnDisk) return 'disk not full: no mount namespaces here'
    return inTurn('disk', async () => {
      await engine.fillDisk()
      await delay(lastsMs)
      await engine.emptyDisk()
      return 'disk full'
    })
  },

  async 'answers-broken'({ gateways }, { draw, lastsMs }) {
    const { name, proxy } = selectFrom(gateways, draw)
    proxy.resetInAnswers(0.2)
    await delay(lastsMs)
    proxy.mend()
    return `answers of ${name} reset`
  },

  'core-cut': ({ cores }, { draw, lastsMs }) =>
    breakCallers(cores, { draw, lastsMs }, 'cut off from its callers', ({ callers }) => callers.cut()),

  'core-slow': ({ cores }, { draw, lastsMs }) =>
    breakCallers(cores, { draw, lastsMs }, 'slowed to its callers', ({ callers }) => callers.slow(20 + (draw % 200))),

  'core-damaged': ({ cores }, { draw, lastsMs }) =>
    breakCallers(cores, { draw, lastsMs }, 'sends damaged answers', ({ callers }) => callers.damageAnswers(0.3)),

  /** Freezes the connections to a core, and checks that calls through them end in time. */
  async 'core-frozen'({ cores, gateways, demo }, { draw, lastsMs, recorder }) {
    const frozen = breakCallers(cores, { draw, lastsMs: 4 * lastsMs }, 'frozen to its callers', ({ callers }) =>
      callers.freeze('calls', 'answers'),
    )
    const asked = Array.from({ length: 8 }, async (_, index) => {
      const { name, url } = selectFrom(gateways, index)
      const began = performance.now()
      const path = `/api/integrations/v1/widget/config/pk_unknown${draw}-${index}`
      const headers = { Origin: demo.origin, 'X-Service-Widget-Version': '1.0' }
      await fetch(`${url}${path}`, { headers, signal: AbortSignal.timeout(answeredWithinMs) }).catch(() => {})
      if (performance.now() - began >= answeredWithinMs)
        recorder.add({ kind: 'stuck', what: `a call through ${name} to a frozen core` })
    })
    await Promise.all(asked)
    return frozen
  },

  restore: restoreBackup,

  ...setFaults,

  /** Writes a ban whose wake-up to the other cores is lost. Then an operator repeats the ban. */
  'hint-lost': (service, { recorder }) => repeatBan(service, recorder),

  /**
   * Writes a policy change whose wake-up is lost. Other faults at the same time may delay the effect of the change.
   */
  'policy-changed': (service, { recorder, draw }) =>
    changePolicy(service, recorder, { name: selectFrom(policyNames, draw), how: 'lost', withinMs: 15_000 }),
} satisfies Record<string, Fault>

export type FaultName = keyof typeof faults
export const faultNames = Object.keys(faults) as FaultName[]

/** Faults that need control of the engine's process, its disk or the connections to it. */
const engineFaults = /^(engine-|cursor-|disk-|restore)/
/** Faults for a database whose processes the run does not control. */
export const clusterFaults = faultNames.filter((name) => !engineFaults.test(name) && !(name in setFaults))
/** Faults for a simulated replica set. */
export const simulatedFaults = faultNames.filter((name) => !engineFaults.test(name))
/** Faults that are possible with the embedded engine, which holds no elections. */
export const localFaults = faultNames.filter((name) => name !== 'primary-stepped-down' && !(name in setFaults))
