import type { Part } from '../part.ts'
import { type Cell, cellOf, type Table } from '../table.ts'
import { usageOf } from '../usage.ts'
import { bare, type Contender, peers, type Sending, service, serviceOf } from './contenders.ts'
import type { SenderCommand, Sent } from './sender.ts'

const connectionCounts = [1, 64, 128]

interface Figures {
  rate: number
  p50: number
  p99: number
  cpuMicros: number
}

type Results = Map<Contender, Map<number, Figures[]>>

/**
 * Measures how fast visitors' messages are accepted. Compares the service with a minimal Fastify
 * server that does one insert per request, and with other systems. With `against`, also measures the
 * service of another checkout.
 */
export const sendPart: Part = async ({ rounds, quick, only, against, profile, log }) => {
  const times = quick ? { warmUpMs: 500, measuredMs: 1_500 } : { warmUpMs: 1_000, measuredMs: 4_000 }
  const sizes = connectionCounts.filter((count) => numbers(only).length === 0 || numbers(only).includes(count))
  const contenders = [service, ...(against ? [serviceOf('Service, other checkout', against)] : []), bare, ...peers]
  const wanted = contenders.filter(
    ({ name }) => names(only).length === 0 || names(only).some((each) => name.toLowerCase().startsWith(each)),
  )
  const started = new Map<Contender, Sending>()
  const accounts: string[] = []
  for (const contender of wanted) {
    try {
      started.set(contender, await contender.start(profile))
    } catch (error) {
      accounts.push(`${contender.name} was not run: ${(error as Error).message}.`)
    }
  }
  const chosen = [...started.keys()]
  const results: Results = new Map(chosen.map((each) => [each, new Map(sizes.map((size) => [size, []]))]))
  const acknowledged = new Map<Contender, number>()
  // Warm-up run, so that V8 has compiled the code. Its figures are discarded.
  for (const [contender, { sender }] of started) {
    const warmUp = { do: 'send', connections: 64, warmUpMs: times.measuredMs, measuredMs: 0 } satisfies SenderCommand
    acknowledged.set(contender, (await sender.call<Sent>(warmUp)).acknowledged)
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const connections of sizes) {
      // Each round starts with another contender, so that the order does not favour one.
      const order = chosen.map((_, index) => chosen[(index + round) % chosen.length] as Contender)
      for (const contender of order) {
        const sending = started.get(contender)
        if (!sending) continue
        const measured = await measure(sending, { do: 'send', connections, ...times }).catch((error: Error) => {
          accounts.push(`${contender.name} failed at ${connections} concurrent sends: ${error.message}.`)
        })
        if (!measured) {
          started.delete(contender)
          await sending.stop()
          continue
        }
        const { figures, sent } = measured
        results.get(contender)?.get(connections)?.push(figures)
        acknowledged.set(contender, (acknowledged.get(contender) ?? 0) + sent.acknowledged)
        log(`round ${round + 1}, ${connections} concurrent sends, ${contender.name}: ${described(figures)}`)
      }
    }
  }
  for (const [contender, sending] of started) {
    accounts.push(
      `${contender.name}: ${acknowledged.get(contender)} acknowledged, ${(await sending.stored()) ?? 'none'} in the store.`,
    )
    await sending.stop()
  }
  const others = chosen.filter((each) => each !== service)
  const table = tableOf(sizes, results, accounts)
  return chosen.includes(service) ? [table, ratiosOf(others, sizes, results)] : [table]
}

async function measure(sending: Sending, command: SenderCommand & { do: 'send' }) {
  const before = await usageOf(sending.pids)
  const sent = await sending.sender.call<Sent>(command)
  const after = await usageOf(sending.pids)
  const figures: Figures = {
    rate: sent.count / sent.seconds,
    p50: sent.p50,
    p99: sent.p99,
    cpuMicros: ((after.cpuSeconds - before.cpuSeconds) / sent.acknowledged) * 1e6,
  }
  return { figures, sent }
}

const numbers = (only: string[]) => only.map(Number).filter(Number.isInteger)
const names = (only: string[]) =>
  only.filter((each) => !Number.isInteger(Number(each))).map((each) => each.toLowerCase())

function described({ rate, p50, p99, cpuMicros }: Figures): string {
  return `${Math.round(rate)}/s, ${p50.toFixed(1)} and ${p99.toFixed(1)} ms, ${Math.round(cpuMicros)} µs each`
}

function tableOf(sizes: number[], results: Results, accounts: string[]): Table {
  return {
    title: 'Sends at maximum rate',
    columns: [
      'concurrent sends',
      'messages/s',
      'median',
      '99th percentile',
      'CPU time per message, without the load process',
    ],
    rows: sizes.flatMap((size) =>
      [...results].map(([{ name }, bySize]) => {
        const figures = bySize.get(size) ?? []
        return {
          name: `${size}: ${name}`,
          cells: [
            cellOf(figures, ({ rate }) => rate, '', 0),
            cellOf(figures, ({ p50 }) => p50, 'ms', 2),
            cellOf(figures, ({ p99 }) => p99, 'ms', 1),
            cellOf(figures, ({ cpuMicros }) => cpuMicros, 'µs', 0),
          ],
        }
      }),
    ),
    notes: [...results.keys()].map(({ name, about }) => `${name}: ${about}.`).concat(accounts),
  }
}

/** Returns a table of ratios: the service's figure divided by another contender's figure in the same round. */
function ratiosOf(others: Contender[], sizes: number[], results: Results): Table {
  const ratio = (other: Contender, size: number, figure: keyof Figures): Cell => {
    const [ours = [], theirs = []] = [service, other].map((each) => results.get(each)?.get(size))
    return {
      values: theirs.map((each, round) => (ours[round]?.[figure] ?? Number.NaN) / each[figure]),
      unit: '',
      digits: 2,
    }
  }
  return {
    title: 'Service relative to the others',
    columns: ['concurrent sends', 'messages/s', 'median', '99th percentile', 'CPU time per message'],
    rows: sizes.flatMap((size) =>
      others.map((other) => ({
        name: `${size}: ${other.name}`,
        cells: (['rate', 'p50', 'p99', 'cpuMicros'] as const).map((figure) => ratio(other, size, figure)),
      })),
    ),
    notes: [],
  }
}
