import type { Kind, LoadCommand } from './load.ts'
import { type Column, compare, measured, type Part, ratioTable, type Step, tablesOf } from './measure.ts'
import { inOne, inParts, serviceWith } from './service.ts'

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
const columns: Column[] = [
  ['requests/s', 'rate', ''],
  ['median', 'p50', 'ms', 2],
  ['processor time: gateway', 'gatewayMicros', 'µs'],
  ['core', 'coreMicros', 'µs'],
  ['one process', 'serveMicros', 'µs'],
  ['engine', 'engineMicros', 'µs'],
]

/** Measures the processor time of each kind of request, in both layouts, with 32 requests at once. */
export const part: Part = async (options) => {
  const { quick, against } = options
  const times = quick ? { warmUpMs: 300, measuredMs: 1_000 } : { warmUpMs: 500, measuredMs: 3_000 }
  const steps = kinds.map(([kind, title]): Step => {
    const command: LoadCommand = { do: 'requests', kind, connections, ...times }
    return {
      ...{ name: kind, title: `Requests, ${connections} at once`, columns },
      row: (contender) => `${title}, ${contender}`,
      run: (running) => measured(running, () => running.work(command)),
    }
  })
  const other = against ? [serviceWith('Other checkout', 'the parts of another checkout', { root: against })] : []
  const results = await compare({
    ...{ contenders: [inParts, inOne, ...other], steps, options },
    // V8 compiles the code, and each visitor gets a page of history.
    async warmUp(running) {
      for (const [kind] of kinds)
        await measured(running, () => running.work({ do: 'requests', kind, connections, measuredMs: 1_000 }))
    },
  })
  const ratios: Column[] = [columns[0]!, ['processor time', 'cpuMicros', '']]
  const table = ratioTable(
    results,
    '`GET /config` relative to `GET /livez`',
    ratios,
    (of, to) =>
      of.contender === to.contender && of.step.name === 'config' && to.step.name === 'livez' && of.contender.name,
  )
  return [...tablesOf(results), table]
}
