import { chat, drain, hold, slow, storm, type Variants } from './steps.ts'
import type { Turn } from './turn.ts'

/** Duration and size of a run. */
export type Extent = 'quick' | 'usual' | 'full'

type Column = [name: string, figure: string, unit: string, digits?: number]

export interface Step {
  name: string
  title: string
  gateways: number
  visitors: number
  columns: Column[]
  run(turn: Turn, extent: Extent): Promise<Variants>
}

const memoryColumns: Column[] = [
  ['resident, what visitors connect to', 'gatewayKb', 'KB', 1],
  ['its heap after a collection', 'heapKb', 'KB', 1],
  ['resident, core', 'behindKb', 'KB', 1],
  ['its heap', 'behindHeapKb', 'KB', 1],
]

const chatColumns: Column[] = [
  ['median', 'p50', 'ms', 2],
  ['99th percentile', 'p99', 'ms', 2],
  ['99.9th', 'p999', 'ms', 2],
  ['processor an event, server', 'gatewayMicros', 'µs'],
  ['core and engine', 'behindMicros', 'µs'],
  ['lost', 'lost', ''],
  ['duplicates', 'doubles', ''],
  ['load busy', 'busy', '', 2],
  ['load late', 'lag', 'ms', 1],
]

const stormColumns: Column[] = [
  ['all have all after', 'ms', 'ms'],
  ['processor a visitor, server', 'gatewayMicros', 'µs'],
  ['core and engine', 'behindMicros', 'µs'],
  ['lost', 'lost', ''],
  ['duplicates', 'doubles', ''],
]

const seconds = (extent: Extent, quick: number, usual: number, full: number) => ({ quick, usual, full })[extent]

/** Steps for `--only`. The first three measure the service's goals; the others are general workloads. */
export const steps: Step[] = [
  {
    name: 'memory',
    title: 'Memory of a stream, 8,000 held open for 20 s',
    gateways: 1,
    visitors: 8_000,
    columns: memoryColumns,
    // Long enough for the heap to release what opening the streams left behind.
    run: (turn, extent) => hold(turn, [8_000], seconds(extent, 5, 20, 60)),
  },
  {
    name: 'events',
    title: '1,000 events/s spread over 8,000 streams, from when they were due to the visitor',
    gateways: 1,
    visitors: 8_000,
    columns: chatColumns,
    run: (turn, extent) => chat(turn, 8_000, [1_000], seconds(extent, 4, 10, 30)),
  },
  {
    name: 'resume',
    title: '2,000 visitors that resume at once',
    gateways: 1,
    visitors: 2_000,
    columns: stormColumns,
    run: (turn) => storm(turn, 2_000, [5]),
  },
  {
    name: 'W1',
    title: 'W1: streams held open with heartbeats',
    gateways: 1,
    visitors: 10_000,
    columns: [
      ...memoryColumns,
      ['kernel', 'slabKb', 'KB', 1],
      ['processor a stream and second, server', 'gatewayMicros', 'µs', 1],
      ['core and engine', 'behindMicros', 'µs', 1],
    ],
    run: (turn, extent) => hold(turn, [1_000, 5_000, 10_000], seconds(extent, 5, 20, 300)),
  },
  {
    name: 'W3',
    title: 'W3: visitor chat, 5,000 sessions, events of 256 B to 2 KB at random times',
    gateways: 1,
    visitors: 5_000,
    columns: chatColumns,
    run: (turn, extent) =>
      chat(turn, 5_000, extent === 'quick' ? [1_000] : [200, 500, 1_000, 2_000], seconds(extent, 4, 8, 30)),
  },
  {
    name: 'W5',
    title: 'W5: 2,000 visitors that resume at once, by what they missed',
    gateways: 1,
    visitors: 2_000,
    columns: stormColumns,
    run: (turn, extent) => storm(turn, 2_000, extent === 'full' ? [0, 5, 50, 300] : [0, 5, 50]),
  },
  {
    name: 'W7',
    title: 'W7: one visitor in a hundred stops reading',
    gateways: 1,
    visitors: 500,
    columns: [
      ['99th percentile before', 'p99Before', 'ms', 1],
      ['of the others, with it', 'p99After', 'ms', 1],
      ['memory more', 'moreMb', 'MB', 1],
      ['cut off after', 'cutAfter', 's', 1],
    ],
    run: (turn, extent) => slow(turn, 500, seconds(extent, 10, 15, 30)),
  },
  {
    name: 'W9',
    title: 'W9: one of two gateways stops under 500 events/s',
    gateways: 2,
    visitors: 5_000,
    columns: [
      ['streams opened again', 'reopened', ''],
      ['most in a tenth of a second', 'mostInATenth', ''],
      ['all back after', 'backAfter', 's', 1],
      ['99th percentile of events', 'p99', 'ms'],
      ['lost', 'lost', ''],
      ['duplicates', 'doubles', ''],
    ],
    run: (turn, extent) => drain(turn, 5_000, seconds(extent, 6, 8, 20)),
  },
]
