import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, it } from 'vitest'
import { quantile } from '../../bench/table.ts'
import { startReceiver } from '../support/receiver.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { chaosConfig } from './config.ts'
import { type ChaosResult, deliverDuringKills, inFlightAtKills, type Victim } from './deliveries.ts'
import { expectDeliveryGuarantees } from './delivery-guarantees.ts'

const config = chaosConfig()
const leaseMs = 5_000
const database = testDatabase()
const coreEnv = { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32', LOG_LEVEL: 'info' }
const closing: (() => Promise<unknown>)[] = []
afterAll(() => Promise.all(closing.map((close) => close())))

/**
 * The stack of most cases. Its database engine runs in a separate process and keeps running when a core is killed.
 * The case that kills the engine starts another stack, whose first core hosts the engine.
 */
let stack: Stack
beforeAll(async () => {
  stack = await startStack({ database, cores: 2, gateways: 0, coreEnv })
})

it.each<[string, Victim[]]>([
  ['one of four workers', ['worker']],
  ['workers and cores in turn', ['worker', 'core']],
  ['workers and the database in turn', ['worker', 'worker', 'engine', 'worker', 'worker']],
])('the service keeps the delivery guarantees if SIGKILL kills %s', async (name, victims) => {
  const hasOwnEngine = victims.includes('engine')
  const used = hasOwnEngine ? await startStack({ cores: 2, gateways: 0, coreEnv }) : stack
  const receiver = await startReceiver()
  const client = new MongoClient(used.demo.mongodbUri)
  closing.push(() => client.close(), receiver.close)
  const began = performance.now()
  const result = await deliverDuringKills({
    stack: used,
    records: client.db(hasOwnEngine ? 'service' : database.name),
    receiver,
    destinations: config.CHAOS_DESTINATIONS,
    leads: config.CHAOS_LEADS,
    leadEveryMs: config.CHAOS_LEAD_EVERY_MS,
    killEveryMs: config.CHAOS_KILL_EVERY_MS,
    victims,
    workers: 4,
    workerEnv: {},
    answerMs: config.CHAOS_ANSWER_MS,
    failFirstOneIn: 50,
  })
  console.log(`\n${name}, ${((performance.now() - began) / 1000).toFixed(0)} s`)
  console.table(summary(result))
  expectDeliveryGuarantees(result, { destinations: config.CHAOS_DESTINATIONS, leaseMs })
})

function summary(result: ChaosResult) {
  const { kills, acknowledged, deliveries, requests, doubles, takeovers } = result
  const killed = (victim: Victim) => kills.filter((kill) => kill.victim === victim).length
  return {
    'leads captured': acknowledged.length,
    deliveries: deliveries.length,
    accepted: deliveries.filter(({ status }) => status === 'accepted').length,
    'requests received': requests.length,
    'workers, cores, engines killed': [killed('worker'), killed('core'), killed('engine')].join(', '),
    'in flight at kills': inFlightAtKills(result),
    doubles,
    'attempts taken over': takeovers.length,
    'takeover delay, median / max, s': [0.5, 1]
      .map((part) => (quantile(takeovers, part) / 1000).toFixed(2))
      .join(' / '),
  }
}
