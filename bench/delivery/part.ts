import { setTimeout as delay } from 'node:timers/promises'
import { type CommandProcess, startCommandProcess } from '../../test/support/processes.ts'
import type { Part, PartOptions } from '../part.ts'
import type { Cell, Table } from '../table.ts'
import { bullmq } from './contenders/bullmq.ts'
import { type Contender, concurrency, destinations } from './contenders/contender.ts'
import { ours } from './contenders/ours.ts'
import { postgresQueues } from './contenders/postgres-queues.ts'
import { crash, drain, enqueue, type Figures, steady } from './steps.ts'

const contenders = [
  ours,
  bullmq({ log: true, appendfsync: 'everysec' }),
  bullmq({ log: true, appendfsync: 'always' }),
  ...postgresQueues,
]
const names = ['drain', 'single', 'enqueue', 'steady', 'crash'] as const
type Step = (typeof names)[number]
/**
 * Figures of one contender: for each step, one entry per round. `failure` is the reason why the
 * contender was not measured.
 */
type Measured = { rounds: Record<Step, Figures[]>; failure?: string }

/**
 * Compares the service's lead delivery with job queues. Receiver, payload and concurrency are the
 * same for all.
 */
export const deliveryPart: Part = async (options) => {
  const { rounds, quick, only, log } = options
  const steps = names.filter((name) => !names.some((each) => only.includes(each)) || only.includes(name))
  const chosen = contenders.filter(
    ({ name }) => only.every((each) => names.includes(each as Step)) || only.some((each) => isNamed(name, each)),
  )
  const sizes = quick ? { drain: 1_000, enqueue: 500, seconds: 5 } : { drain: 5_000, enqueue: 2_000, seconds: 30 }
  const receiver = await startCommandProcess({ entry: 'bench/delivery/receiver.ts' })
  const measured = new Map<Contender, Measured>(
    chosen.map((contender) => [contender, { rounds: { drain: [], single: [], enqueue: [], steady: [], crash: [] } }]),
  )
  for (let round = 0; round < rounds; round += 1) {
    // Each round starts with another contender, so that the order does not favour one.
    const order = chosen.map((_, index) => chosen[(index + round) % chosen.length] as Contender)
    for (const contender of order) {
      const found = measured.get(contender) as Measured
      if (found.failure !== undefined) continue
      log(`round ${round + 1} of ${rounds}: ${contender.name}`)
      await takeTurn(contender, receiver, steps, sizes, found, options).catch((error: Error) => {
        found.failure = error.message
        log(`${contender.name}: ${error.message}`)
      })
    }
  }
  return tablesOf(steps, measured, sizes)
}

async function takeTurn(
  contender: Contender,
  receiver: CommandProcess,
  steps: Step[],
  sizes: { drain: number; enqueue: number; seconds: number },
  found: Measured,
  { profile, log }: PartOptions,
): Promise<void> {
  const delivering = await contender.start(await receiver.call({ do: 'port' }), profile)
  try {
    const run: Record<Step, () => Promise<Figures>> = {
      drain: () => drain(delivering, receiver, sizes.drain),
      single: () => drain(delivering, receiver, sizes.drain, 'fillOne'),
      enqueue: () => enqueue(delivering, receiver, sizes.enqueue),
      steady: () => steady(delivering, receiver, sizes.seconds),
      crash: () => crash(delivering, receiver),
    }
    // Warm-up run. Its figures are discarded.
    await drain(delivering, receiver, Math.min(sizes.drain, 2_000))
    for (const step of steps) {
      await delay(500)
      const figures = await run[step]()
      found.rounds[step].push(figures)
      log(
        `  ${step}: ${Object.entries(figures)
          .map(([name, value]) => `${name} ${Math.round(value * 10) / 10}`)
          .join(', ')}`,
      )
    }
  } finally {
    await delivering.stop()
  }
}

const isNamed = (name: string, wanted: string) => name.toLowerCase().startsWith(wanted.toLowerCase())

function tablesOf(
  steps: Step[],
  measured: Map<Contender, Measured>,
  sizes: { drain: number; enqueue: number; seconds: number },
): Table[] {
  const column =
    (step: Step, figure: string, unit: string, digits = 0) =>
    (found: Measured): Cell => ({
      values: found.rounds[step].flatMap((figures) => figures[figure] ?? []),
      unit,
      digits,
      ...(found.failure !== undefined && { missing: 'not run' }),
    })
  const layouts: Record<Step, { title: string; columns: [name: string, cell: (found: Measured) => Cell][] }> = {
    drain: {
      title: `Drain of ${sizes.drain.toLocaleString('en')} queued deliveries, ${destinations} destinations, ${concurrency} concurrent requests`,
      columns: [
        ['deliveries/s', column('drain', 'rate', '')],
        ['CPU time per delivery, without the receiver', column('drain', 'cpuMicros', 'µs')],
        ['memory', column('drain', 'residentMb', 'MB')],
        ['lost', column('drain', 'missing', '')],
        ['duplicates', column('drain', 'doubles', '')],
      ],
    },
    single: {
      title: `Drain of ${sizes.drain.toLocaleString('en')} queued deliveries of one destination`,
      columns: [
        ['deliveries/s', column('single', 'rate', '')],
        ['CPU time per delivery, without the receiver', column('single', 'cpuMicros', 'µs')],
        ['lost', column('single', 'missing', '')],
        ['duplicates', column('single', 'doubles', '')],
      ],
    },
    enqueue: {
      title: `Enqueue one delivery per call, ${concurrency} concurrent calls`,
      columns: [['deliveries/s', column('enqueue', 'rate', '')]],
    },
    steady: {
      title: `Latency at a steady 100/s for ${sizes.seconds} s, from the call to the receiver`,
      columns: [
        ['median', column('steady', 'p50', 'ms', 1)],
        ['99th percentile', column('steady', 'p99', 'ms', 1)],
        ['CPU use, without the receiver', column('steady', 'cpuPercent', '%')],
        ['lost', column('steady', 'missing', '')],
        ['duplicates', column('steady', 'doubles', '')],
      ],
    },
    crash: {
      title: 'SIGKILL and immediate restart of the worker',
      columns: [
        ['in flight', column('crash', 'inFlight', '')],
        ['lost', column('crash', 'missing', '')],
        ['duplicates', column('crash', 'doubles', '')],
        ['time until all are delivered', column('crash', 'seconds', 's', 1)],
      ],
    },
  }
  const failures = [...measured].flatMap(([{ name }, { failure }]) =>
    failure ? [`${name} was not run: ${failure}.`] : [],
  )
  return steps.map((step, index) => ({
    title: layouts[step].title,
    columns: ['', ...layouts[step].columns.map(([name]) => name)],
    rows: [...measured].map(([{ name }, found]) => ({
      name,
      cells: layouts[step].columns.map(([, cell]) => cell(found)),
    })),
    notes:
      index < steps.length - 1
        ? []
        : [...[...measured.keys()].map(({ name, about }) => `${name}: ${about}.`), ...failures],
  }))
}
