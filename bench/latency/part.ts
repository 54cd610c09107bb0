import type { Part } from '../part.ts'
import { cellOf, quantile, type Table } from '../table.ts'
import { startBare, startService, type Talking } from './contenders.ts'

const pauseMs = 20
const besideEachSecond = 500
const situations = [
  { name: 'idle', besideEachSecond: 0 },
  { name: 'loaded', besideEachSecond },
]

interface Figures {
  p50: number
  p99: number
}

/**
 * Measures the time until an agent's message reaches the visitor, without and with other load.
 * Compares the time with the lower bound of a minimal server.
 */
export const latencyPart: Part = async ({ rounds, quick, only, profile, log }) => {
  const count = quick ? 40 : 150
  const chosen = situations.filter(({ name }) => only.length === 0 || only.includes(name))
  const contenders = [await startBare(), ...(await startService(profile))]
  const results = new Map(chosen.map((each) => [each, new Map(contenders.map((one) => [one, [] as Figures[]]))]))
  // Warm-up run. Its figures are discarded.
  for (const contender of contenders) await contender.talk({ count: 200, pauseMs: 1, besideEachSecond: 0 })
  for (let round = 0; round < rounds; round += 1) {
    for (const situation of chosen) {
      const order = contenders.map((_, index) => contenders[(index + round) % contenders.length] as Talking)
      for (const contender of order) {
        const waits = await contender.talk({ count, pauseMs, besideEachSecond: situation.besideEachSecond })
        const figures = { p50: quantile(waits.slice(-count), 0.5), p99: quantile(waits.slice(-count), 0.99) }
        results.get(situation)?.get(contender)?.push(figures)
        log(
          `round ${round + 1}, ${situation.name}, ${contender.name}: ${figures.p50.toFixed(2)} and ${figures.p99.toFixed(1)} ms`,
        )
      }
    }
  }
  for (const contender of contenders.toReversed()) await contender.stop()
  const notes = contenders.map(({ name, about }) => `${name}: ${about}.`)
  return chosen.map((situation, index) =>
    tableOf(situation, results.get(situation) ?? new Map(), index === chosen.length - 1 ? notes : []),
  )
}

function tableOf(situation: (typeof situations)[number], results: Map<Talking, Figures[]>, notes: string[]): Table {
  const [bare = []] = results.values()
  const beside = situation.besideEachSecond
  return {
    title: `An agent’s message to the visitor, ${beside === 0 ? 'idle' : `with ${beside} other messages a second`}`,
    columns: ['', 'median', '99th percentile', 'median relative to the bare minimum'],
    rows: [...results].map(([{ name }, figures]) => ({
      name,
      cells: [
        cellOf(figures, ({ p50 }) => p50, 'ms', 2),
        cellOf(figures, ({ p99 }) => p99, 'ms', 1),
        cellOf(figures, ({ p50 }, round) => p50 / (bare[round]?.p50 ?? Number.NaN), '', 2),
      ],
    })),
    notes,
  }
}
