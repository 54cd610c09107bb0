import type { Part } from '../part.ts'
import { type Cell, cellOf, type Table } from '../table.ts'
import { apart, type CpuSeconds, type Layout, type RunningLayout, together } from './layouts.ts'
import type { Load, LoadCommand, RequestKind } from './load.ts'

const kinds: Record<RequestKind, string> = {
  livez: '`GET /livez`',
  config: '`GET /config`',
  page: 'page of 20 messages',
  typing: 'typing',
  'page context': 'page context',
  acknowledgement: 'acknowledgement',
  renewal: 'renewal',
  send: 'message',
}
const connections = 32

interface Figures {
  rate: number
  p50: number
  p99: number
  micros: CpuSeconds
}

type Results = Map<Layout, Map<RequestKind, Figures[]>>

/**
 * Measures the CPU time of each kind of request with 32 connections. Compares two layouts: gateway
 * and core in two processes, and both in one process. With `against`, also measures two processes
 * of another checkout. `only` selects kinds of requests.
 */
export const requestsPart: Part = async ({ rounds, quick, only, against, profile, log }) => {
  const times = quick ? { warmUpMs: 300, measuredMs: 1_000 } : { warmUpMs: 500, measuredMs: 3_000 }
  const chosen = (Object.keys(kinds) as RequestKind[]).filter((kind) => only.length === 0 || only.includes(kind))
  const layouts = [
    apart('two processes'),
    together,
    ...(against ? [apart('two processes, other checkout', against)] : []),
  ]
  const results: Results = new Map(layouts.map((layout) => [layout, new Map(chosen.map((kind) => [kind, []]))]))
  const running = new Map<Layout, RunningLayout>()
  for (const layout of layouts) running.set(layout, await layout.start(profile))
  // Warm-up run, so that V8 has compiled the code. Its figures are discarded.
  for (const layout of running.values()) {
    for (const kind of chosen) await measure(layout, { kind, connections, warmUpMs: 0, measuredMs: 1_000 })
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const kind of chosen) {
      // Each round starts with another layout, so that the order does not favour one.
      const order = layouts.map((_, index) => layouts[(index + round) % layouts.length] as Layout)
      for (const layout of order) {
        const figures = await measure(running.get(layout) as RunningLayout, { kind, connections, ...times })
        results.get(layout)?.get(kind)?.push(figures)
        log(`round ${round + 1}, ${kind}, ${layout.name}: ${described(figures)}`)
      }
    }
  }
  for (const layout of running.values()) await layout.stop()
  return [tableOf(results), ratiosOf(results)]
}

async function measure({ load, cpu }: RunningLayout, command: LoadCommand): Promise<Figures> {
  const before = await cpu()
  const { count, seconds, answered, p50, p99 } = await load.call<Load>(command)
  const after = await cpu()
  const micros = (part: keyof CpuSeconds) => ((after[part] - before[part]) / answered) * 1e6
  return {
    rate: count / seconds,
    p50,
    p99,
    micros: { gateway: micros('gateway'), core: micros('core'), engine: micros('engine') },
  }
}

function described({ rate, p50, p99, micros }: Figures): string {
  const parts = Object.entries(micros).map(([part, value]) => `${part} ${Math.round(value)}`)
  return `${Math.round(rate)}/s, ${p50.toFixed(1)} and ${p99.toFixed(1)} ms, ${parts.join(', ')} µs each`
}

function tableOf(results: Results): Table {
  const [first] = results.values()
  return {
    title: `Requests, ${connections} at once`,
    columns: ['', 'requests/s', 'median', 'CPU time per request: gateway', 'core', 'engine'],
    rows: [...(first ?? new Map<RequestKind, Figures[]>()).keys()].flatMap((kind) =>
      [...results].map(([{ name }, byKind]) => {
        const figures = byKind.get(kind) ?? []
        return {
          name: `${kinds[kind]}, ${name}`,
          cells: [
            cellOf(figures, ({ rate }) => rate, '', 0),
            cellOf(figures, ({ p50 }) => p50, 'ms', 2),
            ...(['gateway', 'core', 'engine'] as const).map((part) =>
              cellOf(figures, ({ micros }) => micros[part], 'µs', 0),
            ),
          ],
        }
      }),
    ),
    notes: ['In one process, the time of the gateway includes the core.'],
  }
}

/** Returns the rates of `GET /config` divided by those of `GET /livez` in the same round. */
function ratiosOf(results: Results): Table {
  const ratio = (byKind: Map<RequestKind, Figures[]>, figure: (of: Figures) => number): Cell => {
    const livez = byKind.get('livez') ?? []
    return cellOf(byKind.get('config') ?? [], (each, round) => figure(each) / figure(livez[round] ?? each), '', 2)
  }
  return {
    title: '`GET /config` relative to `GET /livez`',
    columns: ['', 'requests/s', 'CPU time per request, gateway'],
    rows: [...results].map(([{ name }, byKind]) => ({
      name,
      cells: [ratio(byKind, ({ rate }) => rate), ratio(byKind, ({ micros }) => micros.gateway)],
    })),
    notes: [],
  }
}
