import { MongoClient } from 'mongodb'
import { type CollectedSpan, startCollector } from '../../test/support/collector.ts'
import { startCommandProcess } from '../../test/support/processes.ts'
import { until } from '../../test/support/until.ts'
import type { Part } from '../part.ts'
import type { SenderCommand, Sent } from '../send/sender.ts'
import { type BenchCore, startCore, startGateway } from '../service.ts'
import { quantile } from '../table.ts'

/** The spans of one message, from the gateway's request to the insert of the core. */
interface Trace {
  request: CollectedSpan
  batch: CollectedSpan
  call: CollectedSpan
  handler: CollectedSpan
  insert: CollectedSpan
}

/**
 * The stretches of a send, with their time in nanoseconds, on the way there and back. Only the
 * duration of a span is exact; its beginning is known to a millisecond.
 */
const stretches: [name: string, length: (trace: Trace) => bigint][] = [
  ['gateway: checks, validation, answer', ({ request, batch }) => lengthOf(request) - lengthOf(batch)],
  ['gateway: batch', ({ batch, call }) => lengthOf(batch) - lengthOf(call)],
  ['hop between gateway and core', ({ call, handler }) => lengthOf(call) - lengthOf(handler)],
  ['core: authorization, append, answer', ({ handler, insert }) => lengthOf(handler) - lengthOf(insert)],
  ['driver and engine: journaled insert', ({ insert }) => lengthOf(insert)],
]

/** Shows how long each part of a single send takes. Tracing adds about a tenth to each time. */
export const tracePart: Part = async ({ rounds, quick, log }) => {
  const measuredMs = quick ? 2_000 : 8_000
  const collector = await startCollector()
  const env = { ...collector.env, OTEL_BSP_MAX_QUEUE_SIZE: '100000' }
  const core = await startCore({ env })
  const gateway = await startGateway(core, { env })
  const sender = await startCommandProcess({ entry: 'bench/send/sender.ts', args: ['service', String(gateway.port)] })
  const found = stretches.map(([name]) => ({ name, values: [] as number[] }))
  const outside = { name: 'client and sockets of the gateway', values: [] as number[] }
  const alone = { name: 'beside it: the same insert alone', values: [] as number[] }
  for (let round = 0; round < rounds; round += 1) {
    collector.spans.length = 0
    const sent = await sender.call<Sent>({
      do: 'send',
      connections: 1,
      warmUpMs: 2_000,
      measuredMs,
    } satisfies SenderCommand)
    const traces = await tracesOf(collector.spans, sent.count)
    log(`round ${round + 1}: ${traces.length} traces, ${sent.p50.toFixed(2)} ms`)
    for (const [index, [, length]] of stretches.entries()) found[index]?.values.push(medianMicros(traces.map(length)))
    outside.values.push(sent.p50 * 1_000 - medianMicros(traces.map(({ request }) => lengthOf(request))))
    alone.values.push(await insertAlone(core))
  }
  for (const each of [sender, gateway.running, core.running]) await each.stop()
  await collector.close()
  return [
    {
      title: 'Where the time of a single send is',
      columns: ['', 'median'],
      rows: [outside, ...found, alone].map(({ name, values }) => ({ name, cells: [{ values, unit: 'µs' }] })),
      notes: ['one connection; gateway and core as two processes, both export every trace.'],
    },
  ]
}

/** Waits for the spans of the last sends, and joins the spans of each. */
async function tracesOf(spans: CollectedSpan[], wanted: number): Promise<Trace[]> {
  const joined = () => {
    const byParent = Map.groupBy(spans, ({ parentSpanId }) => parentSpanId)
    const below = (span: CollectedSpan | undefined) => byParent.get(span?.spanId ?? 'none')?.[0]
    return spans
      .filter(({ name }) => name.startsWith('POST '))
      .flatMap((request): Trace[] => {
        const batch = below(request)
        const call = below(batch)
        const handler = below(call)
        const insert = below(handler)
        return batch && call && handler && insert ? [{ request, batch, call, handler, insert }] : []
      })
  }
  return until('the traces of all sends', () => (joined().length >= wanted ? joined() : undefined))
}

/** Median of single journaled inserts of a document of a message's size, in microseconds. */
async function insertAlone({ mongodbUri }: BenchCore): Promise<number> {
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

const lengthOf = ({ startTimeUnixNano, endTimeUnixNano }: CollectedSpan) =>
  BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)
const medianMicros = (lengths: bigint[]) =>
  quantile(
    lengths.map((length) => Number(length) / 1_000),
    0.5,
  )
