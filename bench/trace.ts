import { MongoClient } from 'mongodb'
import { type CollectedSpan, startCollector } from '../test/support/collector.ts'
import { until } from '../test/support/until.ts'
import type { LoadCommand } from './load.ts'
import { type Column, compare, type Figures, type Part, type Step, turnedTable } from './measure.ts'
import { type Access, type LoadedService, serviceWith } from './service.ts'
import { quantile } from './table.ts'

/** The stretches of a send. Only the duration of a span is exact; its beginning is known to a millisecond. */
const columns: Column[] = [
  ['client and sockets of the gateway', 'outside', 'µs'],
  ['gateway: checks, validation, answer', 'request', 'µs'],
  ['gateway: batch', 'batch', 'µs'],
  ['hop between gateway and core', 'call', 'µs'],
  ['core: authorization, append, answer', 'handler', 'µs'],
  ['driver and engine: journaled insert', 'insert', 'µs'],
  ['beside it: the same insert alone', 'alone', 'µs'],
]
/** The spans of one message, from the gateway’s request to the insert. Each is the parent of the next. */
const names = ['request', 'batch', 'call', 'handler', 'insert']

/** Shows how long each part of a single send takes. Tracing adds about a tenth to each time. */
export const part: Part = async (options) => {
  const collector = await startCollector()
  const env = { ...collector.env, OTEL_BSP_MAX_QUEUE_SIZE: '100000' }
  const measuredMs = options.quick ? 2_000 : 8_000
  const command: LoadCommand = { do: 'requests', kind: 'send', connections: 1, measuredMs }
  const step: Step<LoadedService> = {
    ...{ name: 'trace', title: 'Where the time of a single send is, medians', columns },
    async run(running) {
      await running.work({ ...command, measuredMs: 2_000 } satisfies LoadCommand)
      await running.settled()
      collector.spans.length = 0
      const { p50 = 0, done = 0 } = await running.work(command)
      return {
        ...(await stretchesOf(collector.spans, done, p50 * 1000)),
        alone: await insertAlone(running.service.access),
      }
    },
  }
  const about = 'gateway and core as two processes, one connection; both export every trace'
  const results = await compare({ contenders: [serviceWith('Service', about, { env })], steps: [step], options })
  await collector.close()
  return [turnedTable(results)]
}

/** Waits for the spans of all sends. Returns the median of each span without the next one, in microseconds. */
async function stretchesOf(spans: CollectedSpan[], wanted: number, wholeMicros: number): Promise<Figures> {
  const joined = () => {
    const byParent = Map.groupBy(spans, ({ parentSpanId }) => parentSpanId)
    const chains = spans
      .filter(({ name }) => name.startsWith('POST '))
      .map((request) => {
        const chain: (CollectedSpan | undefined)[] = [request]
        while (chain.length < names.length) chain.push(byParent.get(chain.at(-1)?.spanId ?? 'none')?.[0])
        return chain
      })
    const whole = chains.filter((chain): chain is CollectedSpan[] => chain.every(Boolean))
    return whole.length >= wanted ? whole : undefined
  }
  const traces = await until('the traces of all sends', joined)
  const medianOf = (length: (trace: CollectedSpan[]) => number) => quantile(traces.map(length), 0.5)
  const stretches = names.map((name, index) => [
    name,
    medianOf((trace) => microsOf(trace[index]!) - (trace[index + 1] ? microsOf(trace[index + 1]!) : 0)),
  ])
  return { outside: wholeMicros - medianOf(([request]) => microsOf(request!)), ...Object.fromEntries(stretches) }
}

const microsOf = ({ startTimeUnixNano, endTimeUnixNano }: CollectedSpan) =>
  Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1000

/** Median of single journaled inserts of a document of a message’s size, in microseconds. */
async function insertAlone({ mongodbUri }: Access): Promise<number> {
  const client = await new MongoClient(mongodbUri).connect()
  const events = client.db('alone').collection('events', { writeConcern: { w: 1, journal: true } })
  const waits: number[] = []
  for (let count = 0; count < 1_000; count += 1) {
    const at = performance.now()
    await events.insertOne({ body: 'x'.repeat(700) })
    waits.push((performance.now() - at) * 1_000)
  }
  await client.close()
  return quantile(waits, 0.5)
}
