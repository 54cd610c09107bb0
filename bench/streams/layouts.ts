import { chat, drain, hold, slow, storm, type Variants } from './steps.ts'
import type { Turn } from './turn.ts'

/** Duration and size of a step. `--quick` and `--full` set it; `usual` is the default. */
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
  ['server, resident memory', 'gatewayKb', 'KB', 1],
  ['server, heap after a collection', 'heapKb', 'KB', 1],
  ['core, resident memory', 'behindKb', 'KB', 1],
  ['core, heap after a collection', 'behindHeapKb', 'KB', 1],
]

const chatColumns: Column[] = [
  ['median', 'p50', 'ms', 2],
  ['99th percentile', 'p99', 'ms', 2],
  ['99.9th percentile', 'p999', 'ms', 2],
  ['CPU time per event, server', 'gatewayMicros', 'µs'],
  ['CPU time per event, core and engine', 'behindMicros', 'µs'],
  ['lost', 'lost', ''],
  ['duplicates', 'doubles', ''],
  ['CPU use of the load process', 'busy', '', 2],
  ['delay of the load process', 'lag', 'ms', 1],
]

const stormColumns: Column[] = [
  ['time until all visitors have all events', 'ms', 'ms'],
  ['CPU time per visitor, server', 'gatewayMicros', 'µs'],
  ['CPU time per visitor, core and engine', 'behindMicros', 'µs'],
  ['lost', 'lost', ''],
  ['duplicates', 'doubles', ''],
]

const seconds = (extent: Extent, quick: number, usual: number, full: number) => ({ quick, usual, full })[extent]

/**
 * Steps that `--only` can select. The first three measure the service's performance goals. The
 * others are workloads that any stream server has.
 */
export const steps: Step[] = [
  {
    name: 'memory',
    title: 'Memory per stream, with 8,000 streams open for 20 s',
    gateways: 1,
    visitors: 8_000,
    columns: memoryColumns,
    // The default of 20 s is long enough for the heap to release memory that was needed only to
    // open the streams.
    run: (turn, extent) => hold(turn, [8_000], seconds(extent, 5, 20, 60)),
  },
  {
    name: 'events',
    title: 'Latency of 1,000 events/s spread over 8,000 streams, from the due time to the visitor',
    gateways: 1,
    visitors: 8_000,
    columns: chatColumns,
    run: (turn, extent) => chat(turn, 8_000, [1_000], seconds(extent, 4, 10, 30)),
  },
  {
    name: 'resume',
    title: '2,000 visitors that resume concurrently',
    gateways: 1,
    visitors: 2_000,
    columns: stormColumns,
    run: (turn) => storm(turn, 2_000, [5]),
  },
  {
    name: 'W1',
    title: 'W1: open streams that receive only heartbeats',
    gateways: 1,
    visitors: 10_000,
    columns: [
      ...memoryColumns,
      ['kernel memory', 'slabKb', 'KB', 1],
      ['CPU time per stream and second, server', 'gatewayMicros', 'µs', 1],
      ['CPU time per stream and second, core and engine', 'behindMicros', 'µs', 1],
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
    title: 'W5: 2,000 visitors that resume concurrently, by number of missed events',
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
      ['99th percentile while all read', 'p99Before', 'ms', 1],
      ['99th percentile of reading visitors', 'p99After', 'ms', 1],
      ['additional memory', 'moreMb', 'MB', 1],
      ['time until stopped visitors are disconnected', 'cutAfter', 's', 1],
    ],
    run: (turn, extent) => slow(turn, 500, seconds(extent, 10, 15, 30)),
  },
  {
    name: 'W9',
    title: 'W9: one of two gateways stops under 500 events/s',
    gateways: 2,
    visitors: 5_000,
    columns: [
      ['reopened streams', 'reopened', ''],
      ['most reopened in a tenth of a second', 'mostInATenth', ''],
      ['time until all are reopened', 'backAfter', 's', 1],
      ['99th percentile of events', 'p99', 'ms'],
      ['lost', 'lost', ''],
      ['duplicates', 'doubles', ''],
    ],
    run: (turn, extent) => drain(turn, 5_000, seconds(extent, 6, 8, 20)),
  },
]
