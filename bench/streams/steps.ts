import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { openFiles, residentBytes } from '../../test/support/proc.ts'
import type { StartedProcess } from '../../test/support/processes.ts'
import { clock } from '../commands.ts'
import { amount, type Figures, measured } from '../measure.ts'
import type { Streaming } from './contenders.ts'
import type { Flow, PublishCommand } from './publisher.ts'
import type { StreamFigures, VisitorsCommand } from './visitors.ts'

type Variants = Map<string, Figures>
type Range = { from: number; count: number }

const openingAtOnce = 200
const arriveWithinMs = 15_000
const chatBytes = { leastBytes: 256, mostBytes: 2048 }

const visitorsOf = <Answer = StreamFigures>({ work }: Streaming, command: VisitorsCommand) => work<Answer>(command)
const publish = ({ work }: Streaming, command: PublishCommand) => work(command)
const open = (streaming: Streaming, range: Range, inFlight = openingAtOnce, events = 0) =>
  visitorsOf<number>(streaming, { do: 'open', ...range, inFlight, events })
const takeFigures = (streaming: Streaming) => visitorsOf(streaming, { do: 'takeFigures' })
const sumOf = async (all: StartedProcess[], read: (pid: number) => Promise<number>) =>
  (await Promise.all(all.map(({ pid }) => read(pid)))).reduce((sum, each) => sum + each, 0)

async function sendToEach(streaming: Streaming, range: Range, times = 1): Promise<void> {
  await takeFigures(streaming)
  const { published = 0 } = await publish(streaming, { do: 'each', ...range, times })
  await visitorsOf(streaming, { do: 'wait', events: published, withinMs: arriveWithinMs })
  await takeFigures(streaming)
}

async function flowOf(streaming: Streaming, flows: Flow[], seconds: number): Promise<Figures> {
  await takeFigures(streaming)
  const figures = await measured(streaming, async () => {
    const { published = 0, failed = 0, lagP99 = 0 } = await publish(streaming, { do: 'flows', flows, seconds })
    await visitorsOf(streaming, { do: 'wait', events: published - failed, withinMs: arriveWithinMs })
    return { done: published, lagP99 }
  })
  // Waits for late duplicates, so that they are counted, too.
  await delay(200)
  const { events, doubles, p50, p99, p999, busy, lagP99 } = await takeFigures(streaming)
  const lag = Math.max(figures.lagP99!, lagP99)
  return { ...figures, p50, p99, p999, lost: figures.done! - events, doubles, busy, lag }
}

/** Open streams receive only heartbeats. */
export async function hold(streaming: Streaming, counts: number[], seconds: number): Promise<Variants> {
  const { servers, behind, heapBytes } = streaming
  const found: Variants = new Map()
  const warmUp = { from: 0, count: 50 }
  await open(streaming, warmUp)
  await sendToEach(streaming, warmUp, 2)
  await visitorsOf(streaming, { do: 'cut' })
  await delay(500)
  const memory = async () => ({
    serverKb: await sumOf(servers, residentBytes),
    heapKb: await heapBytes.server?.(),
    behindKb: behind.length > 0 ? await sumOf(behind.slice(0, 1), residentBytes) : undefined,
    behindHeapKb: await heapBytes.behind?.(),
    // Buffers of sockets are memory of the kernel, measured for the whole system.
    slabKb: Number(/^Slab:\s+(\d+)/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1]) * 1024,
  })
  const before = await memory()
  let from = 0
  for (const count of counts) {
    await open(streaming, { from, count: count - from })
    from = count
    await delay(1_000)
    const figures = await measured(streaming, async () => {
      await delay(seconds * 1000)
      return { done: seconds * count }
    })
    const perStream = Object.entries(await memory()).flatMap(([name, bytes]) => {
      const earlier = before[name as keyof typeof before]
      return bytes === undefined || earlier === undefined ? [] : [[name, (bytes - earlier) / count / 1024] as const]
    })
    found.set(amount(count), { ...figures, ...Object.fromEntries(perStream) })
  }
  return found
}

export async function chat(streaming: Streaming, streams: number, rates: number[], seconds: number): Promise<Variants> {
  const found: Variants = new Map()
  const flow = (rate: number) => [{ from: 0, count: streams, rate, ...chatBytes }]
  await open(streaming, { from: 0, count: streams })
  // A warm-up, in which V8 compiles the code.
  await flowOf(streaming, flow(rates[0]!), seconds)
  for (const rate of rates) found.set(`${amount(rate)}/s`, await flowOf(streaming, flow(rate), seconds))
  return found
}

/** Agents send messages of 40 bytes. Then bots add as many parts to one answer for each visitor. */
export async function grow(streaming: Streaming, count: number, rate: number, seconds: number): Promise<Variants> {
  const flow = { from: 0, count, rate, leastBytes: 40, mostBytes: 40 }
  await open(streaming, flow)
  await flowOf(streaming, [flow], seconds)
  const messages = await flowOf(streaming, [flow], seconds)
  return new Map([
    ['messages', messages],
    ['parts', await flowOf(streaming, [{ ...flow, grows: true }], seconds)],
  ])
}

export async function storm(streaming: Streaming, count: number, missed: number[]): Promise<Variants> {
  const found: Variants = new Map()
  const range = { from: 0, count }
  await open(streaming, range)
  // Each visitor needs a position to resume from. The first storm is a warm-up.
  await sendToEach(streaming, range)
  for (const [turn, times] of [0, ...missed].entries()) {
    await visitorsOf(streaming, { do: 'cut' })
    await delay(500)
    if (times > 0) await publish(streaming, { do: 'each', ...range, times })
    await delay(500)
    await takeFigures(streaming)
    const figures = await measured(streaming, async () => {
      const ms = await open(streaming, range, count, times)
      return { ms, done: count }
    })
    await delay(300)
    const { events, doubles } = await takeFigures(streaming)
    if (turn > 0) found.set(`${amount(times)} missed`, { ...figures, lost: count * times - events, doubles })
  }
  return found
}

export async function slow(streaming: Streaming, streams: number, seconds: number): Promise<Variants> {
  const { servers } = streaming
  const stalled = streams / 100
  const toSlow = { from: 0, count: stalled, rate: 400, leastBytes: 4_000, mostBytes: 4_000, wide: true }
  const toOthers = { from: stalled, count: streams - stalled, rate: 200, ...chatBytes }
  const files = () => sumOf(servers, async (pid) => (await openFiles(pid)).length)
  await open(streaming, { from: 0, count: streams })
  await flowOf(streaming, [toOthers], 3)
  const all = await flowOf(streaming, [toSlow, toOthers], seconds)
  const [filesBefore, memoryBefore] = [await files(), await sumOf(servers, residentBytes)]
  await visitorsOf(streaming, { do: 'stall', count: stalled })
  let cutAfter: number | undefined
  let mostMemory = 0
  const began = clock()
  const watching = setInterval(async () => {
    mostMemory = Math.max(mostMemory, await sumOf(servers, residentBytes))
    if ((await files()) <= filesBefore - stalled) cutAfter ??= (clock() - began) / 1000
  }, 250)
  const others = await flowOf(streaming, [toSlow, toOthers], seconds)
  clearInterval(watching)
  const moreMb = (mostMemory - memoryBefore) / 1e6
  const figures = { p99Before: all.p99!, p99After: others.p99!, moreMb, ...(cutAfter !== undefined && { cutAfter }) }
  return new Map([[`${stalled} of ${amount(streams)}`, figures]])
}

export async function drain(streaming: Streaming, streams: number, seconds: number): Promise<Variants> {
  const range = { from: 0, count: streams }
  await open(streaming, range)
  await sendToEach(streaming, range)
  await visitorsOf(streaming, { do: 'follow', on: true })
  const stopping = delay(1_000).then(() => streaming.servers[0]!.kill('SIGTERM'))
  await takeFigures(streaming)
  const flows = [{ ...range, rate: 500, ...chatBytes }]
  const { published = 0 } = await publish(streaming, { do: 'flows', flows, seconds })
  await visitorsOf(streaming, { do: 'wait', events: published, withinMs: 30_000 })
  await delay(300)
  const { events, doubles, p99, reopened } = await takeFigures(streaming)
  await stopping
  const figures = {
    ...{ reopened: reopened.reduce((sum, each) => sum + each, 0), mostInATenth: Math.max(0, ...reopened) },
    ...{ backAfter: reopened.length / 10, p99, lost: published - events, doubles },
  }
  return new Map([[amount(streams), figures]])
}
