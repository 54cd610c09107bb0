import { setTimeout as delay } from 'node:timers/promises'
import { amount, type Column, compare, type Figures, type Part, type Step, tablesOf } from '../measure.ts'
import { contenders, type Delivering, inOneProcess } from './contenders.ts'
import { concurrency, destinations } from './pacing.ts'
import { crash, drain, drainOne, steady } from './steps.ts'

const ends: Column[] = [
  ['lost', 'missing', ''],
  ['duplicates', 'doubles', ''],
]
export const drainColumns: Column[] = [
  ['deliveries/s', 'rate', ''],
  ['processor time of a delivery, without the receiver', 'cpuMicros', 'µs'],
  ['memory', 'residentMb', 'MB'],
  ...ends,
]

/**
 * Compares lead delivery with job queues. Counts the processor time of all producers, and of the work after the
 * last answer.
 */
export const part: Part = async (options) => {
  const { quick } = options
  const sizes = quick ? { drain: 1_000, seconds: 5 } : { drain: 5_000, seconds: 30 }
  const step = (
    name: string,
    title: string,
    columns: Column[],
    measure: (delivering: Delivering) => Promise<Figures>,
  ): Step<Delivering> => ({
    ...{ name, title, columns },
    // The worker of one process cannot be stopped alone.
    isFor: (contender) => name === 'steady' || contender !== inOneProcess,
    async run(delivering) {
      await delay(500)
      return measure(delivering)
    },
  })
  const queued = `Drain of ${amount(sizes.drain)} queued deliveries`
  const steps = [
    step(
      'drain',
      `${queued}, ${destinations} destinations, ${concurrency} concurrent requests`,
      drainColumns,
      (delivering) => drain(delivering, sizes.drain),
    ),
    step('single', `${queued} of one destination`, drainColumns, (delivering) => drainOne(delivering, sizes.drain)),
    step(
      'steady',
      `A steady 100 deliveries/s for ${sizes.seconds} s, from the call to the receiver`,
      [
        ['median', 'p50', 'ms', 1],
        ['99th percentile', 'p99', 'ms', 1],
        ['processor, without the receiver', 'cpuPercent', '%'],
        ...ends,
      ],
      (delivering) => steady(delivering, sizes.seconds),
    ),
    step(
      'crash',
      'SIGKILL and immediate restart of the worker',
      [['in flight', 'inFlight', ''], ...ends, ['time until all are delivered', 'seconds', 's', 1]],
      crash,
    ),
  ]
  const warmUp = async (delivering: Delivering) =>
    delivering.worker() ? drain(delivering, Math.min(sizes.drain, 2_000)) : steady(delivering, sizes.seconds)
  return tablesOf(await compare({ contenders, steps, options, warmUp, starts: 'round' }))
}
