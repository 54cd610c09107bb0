import type { Kind, LoadCommand } from './load.ts'
import {
  type Column,
  type Contender,
  compare,
  measured,
  type Part,
  type Running,
  ratioTable,
  tablesOf,
} from './measure.ts'
import { bareServers, rivals } from './rivals/servers.ts'
import { inOne, inParts, serviceWith } from './service.ts'

const otherCheckout = (root: string | undefined): Contender[] =>
  root ? [serviceWith('Other checkout', 'the service of another checkout', { root })] : []
const does = (command: LoadCommand) => (running: Running) => measured(running, () => running.work(command))
const cost = (of: string): Column => [`processor time of ${of}`, 'cpuMicros', 'µs']
const times: Column[] = [
  ['median', 'p50', 'ms', 2],
  ['99th percentile', 'p99', 'ms', 1],
]

const sendColumns: Column[] = [
  ['messages/s', 'rate', ''],
  ...times,
  cost('a message'),
  ['deferred work ends after', 'settledMs', 'ms'],
  ['lost', 'lost', ''],
]

/** The cost of a message contains the work that is done later. */
export const send: Part = async (options) => {
  const measures = options.quick ? { warmUpMs: 500, measuredMs: 1_500 } : { warmUpMs: 1_000, measuredMs: 4_000 }
  const command: LoadCommand = { do: 'requests', kind: 'send', connections: 64, ...measures }
  const steps = [1, 64, 128].map((connections) => ({
    ...{ name: String(connections), title: 'Sends at maximum rate', columns: sendColumns },
    row: (contender: string) => `${connections}: ${contender}`,
    run: does({ ...command, connections }),
  }))
  const contenders = [inParts, inOne, ...otherCheckout(options.against), ...bareServers, ...rivals]
  // A warm-up, in which V8 compiles the code.
  const results = await compare({ contenders, steps, options, warmUp: does(command) })
  const services: Contender[] = [inParts, inOne]
  const ratios = ratioTable(results, 'The service relative to the others', sendColumns.slice(0, 4), (of, to) =>
    of.step === to.step && services.includes(of.contender) && !services.includes(to.contender)
      ? `${of.step.name}: ${of.contender.name} to ${to.contender.name}`
      : false,
  )
  return [...tablesOf(results), ratios]
}

const kinds: [kind: Kind, name: string][] = [
  ['livez', '`GET /livez`'],
  ['config', '`GET /config`'],
  ['page', 'page of 20 messages'],
  ['typing', 'typing'],
  ['page context', 'page context'],
  ['acknowledgement', 'acknowledgement'],
  ['renewal', 'renewal'],
  ['send', 'message'],
]
const connections = 32
const requestColumns: Column[] = [
  ['requests/s', 'rate', ''],
  times[0]!,
  ['processor time: gateway', 'gatewayMicros', 'µs'],
  ['core', 'coreMicros', 'µs'],
  ['one process', 'serveMicros', 'µs'],
  ['engine', 'engineMicros', 'µs'],
]

export const requests: Part = async (options) => {
  const measures = options.quick ? { warmUpMs: 300, measuredMs: 1_000 } : { warmUpMs: 500, measuredMs: 3_000 }
  const steps = kinds.map(([kind, title]) => ({
    ...{ name: kind, title: `Requests, ${connections} at once`, columns: requestColumns },
    row: (contender: string) => `${title}, ${contender}`,
    run: does({ do: 'requests', kind, connections, ...measures }),
  }))
  const results = await compare({
    ...{ contenders: [inParts, inOne, ...otherCheckout(options.against)], steps, options },
    // V8 compiles the code, and each visitor gets a page of history.
    async warmUp(running) {
      for (const [kind] of kinds) await does({ do: 'requests', kind, connections, measuredMs: 1_000 })(running)
    },
  })
  const title = '`GET /config` relative to `GET /livez`'
  const ratios: Column[] = [requestColumns[0]!, ['processor time', 'cpuMicros', '']]
  const table = ratioTable(
    results,
    title,
    ratios,
    (of, to) =>
      of.contender === to.contender && of.step.name === 'config' && to.step.name === 'livez' && of.contender.name,
  )
  return [...tablesOf(results), table]
}

const latencyColumns: Column[] = [...times, cost('each message'), ['other messages a second', 'beside', '']]
const twoCores = serviceWith(
  'Service, two cores',
  'the agent calls one core, and the visitor’s gateway uses the other',
  { cores: 2 },
)

export const latency: Part = async (options) => {
  const count = options.quick ? 40 : 150
  const steps = [0, 500].map((besideEachSecond) => ({
    ...{ name: besideEachSecond === 0 ? 'idle' : 'loaded', columns: latencyColumns },
    title: `An agent’s message to the visitor, ${besideEachSecond === 0 ? 'idle' : 'with 500 other messages a second'}`,
    run: does({ do: 'talk', count, pauseMs: 20, besideEachSecond }),
  }))
  const contenders = [...bareServers, inParts, twoCores, inOne]
  const warmUp = does({ do: 'talk', count: 200, pauseMs: 1, besideEachSecond: 0 })
  const results = await compare({ contenders, steps, options, warmUp })
  const [bare] = bareServers
  const ratios = ratioTable(
    results,
    `Relative to ${bare!.name}`,
    latencyColumns.slice(0, 3),
    (of, to) => of.step === to.step && to.contender === bare && `${of.step.name}: ${of.contender.name}`,
  )
  return [...tablesOf(results), ratios]
}
