import { type Column, compare, type Figures, type Part, type Step, tablesOf } from '../measure.ts'
import { contenders, inParts, type Streaming } from './contenders.ts'
import { chat, drain, grow, hold, slow, storm } from './steps.ts'

const ends: Column[] = [
  ['lost', 'lost', ''],
  ['duplicates', 'doubles', ''],
]
const micros = (of: string): Column[] => [
  [`processor time of ${of}, server`, 'serverMicros', 'µs'],
  ['core and engine', 'behindMicros', 'µs'],
]
const memoryColumns: Column[] = [
  ['server, resident memory', 'serverKb', 'KB', 1],
  ['server, heap after a collection', 'heapKb', 'KB', 1],
  ['core, resident memory', 'behindKb', 'KB', 1],
  ['core, heap after a collection', 'behindHeapKb', 'KB', 1],
  ['kernel memory', 'slabKb', 'KB', 1],
  ...micros('a stream and second'),
]
const chatColumns: Column[] = [
  ['median', 'p50', 'ms', 2],
  ['99th percentile', 'p99', 'ms', 2],
  ['99.9th percentile', 'p999', 'ms', 2],
  ...micros('an event'),
  ...ends,
  ['processor of the load process', 'busy', '', 2],
  ['delay of the load process', 'lag', 'ms', 1],
]
const stormColumns: Column[] = [
  ['time until all visitors have all events', 'ms', 'ms'],
  ...micros('a visitor'),
  ...ends,
]
const slowColumns: Column[] = [
  ['99th percentile while all read', 'p99Before', 'ms', 1],
  ['99th percentile of reading visitors', 'p99After', 'ms', 1],
  ['additional memory', 'moreMb', 'MB', 1],
  ['time until stopped visitors are disconnected', 'cutAfter', 's', 1],
]
const drainColumns: Column[] = [
  ['reopened streams', 'reopened', ''],
  ['most reopened in a tenth of a second', 'mostInATenth', ''],
  ['time until all are reopened', 'backAfter', 's', 1],
  ['99th percentile of events', 'p99', 'ms'],
  ...ends,
]

export const part: Part = async (options) => {
  const { quick, full } = options
  const extent = <T>(short: T, usual: T, long: T) => (quick ? short : full ? long : usual)
  /** The visitors of a run are the same in all its steps. */
  const isSmall =
    options.only.some((name) => ['resume', 'slow', 'growing'].includes(name)) &&
    !options.only.some((name) => ['memory', 'events', 'drain'].includes(name))
  const step = (
    name: string,
    title: string,
    columns: Column[],
    run: (streaming: Streaming) => Promise<Map<string, Figures>>,
    gateways = 1,
  ): Step<Streaming> => ({
    ...{ name, title, columns, run },
    start: { gateways, visitors: isSmall ? 2_000 : 8_000 },
    isFor: ({ name: of }) =>
      (gateways === 1 || of === inParts.name) && (name !== 'growing' || of.startsWith('Service')),
  })
  const steps = [
    step('memory', 'Open streams that receive only heartbeats', memoryColumns, (streaming) =>
      // 20 s are enough for the heap to release what was needed only to open the streams.
      hold(streaming, extent([8_000], [8_000], [1_000, 4_000, 8_000]), extent(5, 20, 300)),
    ),
    step('events', 'Events over 8,000 streams, from the due time to the visitor', chatColumns, (streaming) =>
      chat(streaming, 8_000, extent([1_000], [1_000], [200, 500, 1_000, 2_000]), extent(4, 10, 30)),
    ),
    step('resume', '2,000 visitors that resume at once, by number of missed events', stormColumns, (streaming) =>
      storm(streaming, 2_000, extent([0, 5, 50], [0, 5, 50], [0, 5, 50, 300])),
    ),
    step('growing', '100 answers that grow by 200 parts/s in all, beside as many messages', chatColumns, (streaming) =>
      grow(streaming, 100, 200, extent(6, 10, 20)),
    ),
    step('slow', 'One visitor in a hundred stops reading', slowColumns, (streaming) =>
      slow(streaming, 500, extent(10, 15, 30)),
    ),
    step(
      'drain',
      'One of two gateways stops under 500 events/s',
      drainColumns,
      (streaming) => drain(streaming, 5_000, extent(6, 8, 20)),
      2,
    ),
  ]
  return tablesOf(await compare({ contenders, steps, options, starts: 'step' }))
}
