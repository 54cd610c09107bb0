import type { LoadCommand } from './load.ts'
import { type Column, compare, measured, type Part, ratioTable, type Step, tablesOf } from './measure.ts'
import { bareServers } from './rivals/servers.ts'
import { inOne, inParts, serviceWith } from './service.ts'

const columns: Column[] = [
  ['median', 'p50', 'ms', 2],
  ['99th percentile', 'p99', 'ms', 1],
  ['processor time of each message', 'cpuMicros', 'µs', 0],
  ['other messages a second', 'beside', '', 0],
]
const twoCores = serviceWith(
  'Service, two cores',
  'the agent calls one core, and the visitor’s gateway uses the other',
  {
    cores: 2,
  },
)
const situations = [
  { name: 'idle', besideEachSecond: 0 },
  { name: 'loaded', besideEachSecond: 500 },
]

/**
 * Measures the time until an agent’s message is on the visitor’s stream, without and with other messages. All
 * contenders get the same load, over HTTP.
 */
export const part: Part = async (options) => {
  const count = options.quick ? 40 : 150
  const steps = situations.map(({ name, besideEachSecond }): Step => {
    const command: LoadCommand = { do: 'talk', count, pauseMs: 20, besideEachSecond }
    const beside = besideEachSecond === 0 ? 'idle' : `with ${besideEachSecond} other messages a second`
    return {
      ...{ name, columns, title: `An agent’s message to the visitor, ${beside}` },
      run: (running) => measured(running, () => running.work(command)),
    }
  })
  const warmUp: LoadCommand = { do: 'talk', count: 200, pauseMs: 1, besideEachSecond: 0 }
  const contenders = [...bareServers, inParts, twoCores, inOne]
  const results = await compare({
    ...{ contenders, steps, options },
    warmUp: (running) => measured(running, () => running.work(warmUp)),
  })
  const [bare] = bareServers
  const ratios = ratioTable(
    results,
    `Relative to ${bare!.name}`,
    columns.slice(0, 3),
    (of, to) => of.step === to.step && to.contender === bare && `${of.step.name}: ${of.contender.name}`,
  )
  return [...tablesOf(results), ratios]
}
