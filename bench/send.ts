import type { LoadCommand } from './load.ts'
import {
  type Column,
  type Contender,
  compare,
  measured,
  type Part,
  type PartOptions,
  ratioTable,
  type Step,
  tablesOf,
} from './measure.ts'
import { bareServers, rivals } from './rivals/servers.ts'
import { inOne, inParts, serviceWith } from './service.ts'

const columns: Column[] = [
  ['messages/s', 'rate', '', 0],
  ['median', 'p50', 'ms', 2],
  ['99th percentile', 'p99', 'ms', 1],
  ['processor time of a message', 'cpuMicros', 'µs', 0],
  ['deferred work ends after', 'settledMs', 'ms', 0],
  ['lost', 'lost', ''],
]

function contendersOf({ against }: PartOptions): Contender[] {
  const other = against ? [serviceWith('Other checkout', 'the service of another checkout', { root: against })] : []
  return [inParts, inOne, ...other, ...bareServers, ...rivals]
}

/** Measures how fast visitors' messages are accepted, and what they cost with the work that follows. */
export const part: Part = async (options) => {
  const times = options.quick ? { warmUpMs: 500, measuredMs: 1_500 } : { warmUpMs: 1_000, measuredMs: 4_000 }
  const steps = [1, 64, 128].map((connections): Step => {
    const command: LoadCommand = { do: 'requests', kind: 'send', connections, ...times }
    return {
      ...{ name: String(connections), title: 'Sends at maximum rate', columns },
      row: (contender) => `${connections}: ${contender}`,
      run: (running) => measured(running, () => running.work(command)),
    }
  })
  const warmUp: LoadCommand = { do: 'requests', kind: 'send', connections: 64, measuredMs: times.measuredMs }
  const results = await compare({
    ...{ contenders: contendersOf(options), steps, options },
    // V8 compiles the code.
    warmUp: async (running) => measured(running, () => running.work(warmUp)),
  })
  const services: Contender[] = [inParts, inOne]
  const ratios = ratioTable(results, 'The service relative to the others', columns.slice(0, 4), (of, to) =>
    of.step === to.step && services.includes(of.contender) && !services.includes(to.contender)
      ? `${of.step.name}: ${of.contender.name} to ${to.contender.name}`
      : false,
  )
  return [...tablesOf(results), ratios]
}
