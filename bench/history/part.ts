import { join } from 'node:path'
import { type CommandProcess, startCommandProcess } from '../../test/support/processes.ts'
import type { Part } from '../part.ts'
import { startCore, startGateway } from '../service.ts'
import { cellOf, type Table } from '../table.ts'
import { usageOf } from '../usage.ts'
import type { Action, Measured, ReaderCommand } from './reader.ts'

interface Size {
  messages: number
  /** Number of messages in the largest conversation. */
  largest: number
}

const sizes: Size[] = [
  { messages: 10_000, largest: 1_000 },
  { messages: 100_000, largest: 10_000 },
  { messages: 1_000_000, largest: 100_000 },
]
const actions: Action[] = ['page', 'send', 'largest page', 'largest send']

interface Store {
  reader: CommandProcess
  pids: number[]
  stop(): Promise<void>
}

interface Figures extends Measured {
  cpuMicros: number
}

/**
 * Measures how the latency of requests depends on the number of stored messages. Each size has its
 * own core, engine and gateway. Only one size is measured at a time.
 */
export const historyPart: Part = async ({ rounds, quick, profile, log }) => {
  const count = quick ? 100 : 400
  const stores = new Map<Size, Store>()
  const results = new Map(actions.map((action) => [action, new Map(sizes.map((size) => [size, [] as Figures[]]))]))
  for (const size of quick ? sizes.slice(0, 2) : sizes) {
    const began = performance.now()
    stores.set(size, await startStore(size, profile))
    log(`${amount(size.messages)} messages written in ${((performance.now() - began) / 1000).toFixed(0)} s`)
  }
  // Warm-up run. Its figures are discarded. It also sends each visitor's first message.
  for (const { reader } of stores.values()) for (const action of actions) await measure(reader, action, 300)
  for (let round = 0; round < rounds; round += 1) {
    for (const action of actions) {
      const order = [...stores].map((_, index) => [...stores][(index + round) % stores.size] as [Size, Store])
      for (const [size, { reader, pids }] of order) {
        const before = await usageOf(pids)
        const measured = await measure(reader, action, count)
        const cpuMicros = (((await usageOf(pids)).cpuSeconds - before.cpuSeconds) / count) * 1e6
        results
          .get(action)
          ?.get(size)
          ?.push({ ...measured, cpuMicros })
        log(`round ${round + 1}, ${action}, ${amount(size.messages)}: ${measured.p50.toFixed(2)} ms`)
      }
    }
  }
  for (const store of stores.values()) await store.stop()
  return [tableOf(results)]
}

async function startStore(size: Size, profile: string | undefined): Promise<Store> {
  const core = await startCore({ profile })
  const gateway = await startGateway(core, { profile })
  const args = [join(core.dataDir, 'demo.json'), String(gateway.port)]
  const reader = await startCommandProcess({ entry: 'bench/history/reader.ts', args })
  await reader.call({ do: 'fill', ...size } satisfies ReaderCommand)
  return {
    reader,
    pids: [core.running.pid, gateway.running.pid],
    async stop() {
      for (const each of [reader, gateway.running, core.running]) await each.stop()
    },
  }
}

const measure = (reader: CommandProcess, action: Action, count: number) =>
  reader.call<Measured>({ do: 'measure', action, count } satisfies ReaderCommand)

const amount = (number: number) => number.toLocaleString('en')

function tableOf(results: Map<Action, Map<Size, Figures[]>>): Table {
  const titles: Record<Action, string> = {
    page: 'a page of 20',
    send: 'a send',
    'largest page': 'a page anywhere in the largest conversation',
    'largest send': 'a send to the largest conversation',
  }
  return {
    title: 'Latency of single requests, by number of stored messages',
    columns: ['', 'median', '99th percentile', 'CPU time per request', 'median relative to the smallest store'],
    rows: [...results].flatMap(([action, bySize]) => {
      const [smallest = []] = bySize.values()
      return [...bySize].map(([{ messages }, figures]) => ({
        name: `${titles[action]}, ${amount(messages)} messages`,
        cells: [
          cellOf(figures, ({ p50 }) => p50, 'ms', 2),
          cellOf(figures, ({ p99 }) => p99, 'ms', 1),
          cellOf(figures, ({ cpuMicros }) => cpuMicros, 'µs', 0),
          cellOf(figures, ({ p50 }, round) => p50 / (smallest[round]?.p50 ?? Number.NaN), '', 2),
        ],
      }))
    }),
    notes: [
      'Each store has one conversation with a tenth of all messages, and other conversations with 20 each. Each store has its own gateway, core and engine.',
    ],
  }
}
