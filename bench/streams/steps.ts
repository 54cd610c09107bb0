import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../commands.ts'
import { usageOf } from '../usage.ts'
import { countOpenFiles, residentBytesOf, slabBytes } from './memory.ts'
import { cpuBetween, type Turn } from './turn.ts'
import type { StreamFigures } from './visitors.ts'

export type Figures = Record<string, number>
/**
 * Figures of a step by variant. The variants differ, for example, in the number of streams or the
 * event rate.
 */
export type Variants = Map<string, Figures>

const number = (value: number) => value.toLocaleString('en')
/** Number of streams in the warm-up, which loads code and opens connections. */
const warmUpStreams = 50

async function warmUp({ open, each, visitors }: Turn): Promise<void> {
  await open({ from: 0, count: warmUpStreams })
  await each({ from: 0, count: warmUpStreams, times: 2 })
  await visitors({ do: 'cut' })
  await delay(500)
}

/** Runs the steps `memory` and `W1` of layouts.ts: open streams receive only heartbeats. */
export async function hold(turn: Turn, counts: number[], seconds: number): Promise<Variants> {
  const { streaming, gateways, behind, open } = turn
  const found: Variants = new Map()
  await warmUp(turn)
  const heapBefore = await streaming.heapBytes()
  const before = {
    gateway: await residentBytesOf(gateways),
    behind: await residentBytesOf(behind),
    slab: await slabBytes(),
  }
  let from = 0
  for (const count of counts) {
    await open({ from, count: count - from })
    from = count
    await delay(1_000)
    const began = await Promise.all([usageOf(gateways), usageOf(behind)])
    await delay(seconds * 1000)
    const ended = await Promise.all([usageOf(gateways), usageOf(behind)])
    const perStream = (after: number, earlier: number) => (after - earlier) / count / 1024
    const perSecond = (index: 0 | 1) => (cpuBetween(began[index], ended[index]) / seconds / count) * 1e6
    const figures: Figures = {
      gatewayKb: perStream(await residentBytesOf(gateways), before.gateway),
      slabKb: perStream(await slabBytes(), before.slab),
      gatewayMicros: perSecond(0),
    }
    if (behind.length > 0) {
      figures.behindKb = perStream(await residentBytesOf(behind), before.behind)
      figures.behindMicros = perSecond(1)
    }
    const heap = await streaming.heapBytes()
    if (heap && heapBefore) figures.heapKb = perStream(heap.gateway, heapBefore.gateway)
    if (heap && heapBefore && behind.length > 0) figures.behindHeapKb = perStream(heap.behind, heapBefore.behind)
    found.set(number(count), figures)
  }
  return found
}

/**
 * Runs the steps `events` and `W3` of layouts.ts: random visitors receive events of 256 bytes to 2
 * KB.
 */
export async function chat(turn: Turn, streams: number, rates: number[], seconds: number): Promise<Variants> {
  const found: Variants = new Map()
  const flow = (rate: number) => [{ from: 0, count: streams, rate, leastBytes: 256, mostBytes: 2048 }]
  await turn.open({ from: 0, count: streams })
  // Warm-up run, so that V8 has compiled the code. Its figures are discarded.
  await turn.flow(flow(rates[0] ?? 500), seconds)
  for (const rate of rates) found.set(`${number(rate)}/s`, await turn.flow(flow(rate), seconds))
  return found
}

/**
 * Runs the steps `resume` and `W5` of layouts.ts: all connections break, events are published, and
 * all visitors reconnect at once.
 */
export async function storm(turn: Turn, count: number, missed: number[]): Promise<Variants> {
  const { gateways, behind, open, visitors, each } = turn
  const found: Variants = new Map()
  const range = { from: 0, count }
  await open(range)
  // Sends one event to each stream, so that each visitor has a position from which it can resume.
  // All visitors reconnect at once several times. The first time is a warm-up, and its figures are
  // discarded.
  await each({ ...range, times: 1 })
  for (const [turnOfIt, times] of [0, ...missed].entries()) {
    await visitors({ do: 'cut' })
    await delay(500)
    if (times > 0) await each({ ...range, times })
    await delay(500)
    await visitors({ do: 'takeFigures' })
    const before = await Promise.all([usageOf(gateways), usageOf(behind)])
    const ms = await open({ ...range, inFlight: count, events: times })
    const after = await Promise.all([usageOf(gateways), usageOf(behind)])
    await delay(300)
    const { events, doubles } = await visitors<StreamFigures>({ do: 'takeFigures' })
    const perVisitor = (index: 0 | 1) => (cpuBetween(before[index], after[index]) / count) * 1e6
    const lost = count * times - events
    if (turnOfIt === 0) continue
    found.set(`${number(times)} missed`, {
      ...{ ms, gatewayMicros: perVisitor(0), behindMicros: perVisitor(1), lost, doubles },
    })
  }
  return found
}

/**
 * Runs the step `W7` of layouts.ts: one visitor in a hundred stops reading while it gets events of
 * 12 KB. The others read normally.
 */
export async function slow(turn: Turn, streams: number, seconds: number): Promise<Variants> {
  const { gateways, open, flow, visitors } = turn
  const stalled = streams / 100
  const toSlow = { from: 0, count: stalled, rate: 400, leastBytes: 4_000, mostBytes: 4_000, wide: true }
  const toOthers = { from: stalled, count: streams - stalled, rate: 200, leastBytes: 256, mostBytes: 2048 }
  await open({ from: 0, count: streams })
  await flow([toOthers], 3)
  const all = await flow([toSlow, toOthers], seconds)
  const [filesBefore, memoryBefore] = [await countOpenFiles(gateways), await residentBytesOf(gateways)]
  await visitors({ do: 'stall', count: stalled })
  let cutAfter = Number.NaN
  let mostMemory = 0
  const began = clock()
  const watching = setInterval(async () => {
    mostMemory = Math.max(mostMemory, await residentBytesOf(gateways))
    if (Number.isNaN(cutAfter) && (await countOpenFiles(gateways)) <= filesBefore - stalled) {
      cutAfter = (clock() - began) / 1000
    }
  }, 250)
  const others = await flow([toSlow, toOthers], seconds)
  clearInterval(watching)
  return new Map([
    [
      `${stalled} of ${number(streams)}`,
      {
        ...{ p99Before: all.p99, p99After: others.p99 },
        ...{ moreMb: (mostMemory - memoryBefore) / 1e6, ...(Number.isNaN(cutAfter) ? {} : { cutAfter }) },
      },
    ],
  ])
}

/**
 * Runs the step `W9` of layouts.ts: one of two gateways stops under load, and its visitors
 * reconnect to the other gateway.
 */
export async function drain(turn: Turn, streams: number, seconds: number): Promise<Variants> {
  const { streaming, open, visitors, each } = turn
  await open({ from: 0, count: streams })
  // Sends one event to each stream, so that each visitor has a position from which it can resume.
  await each({ from: 0, count: streams, times: 1 })
  await visitors({ do: 'follow', on: true })
  const [first] = streaming.gateways
  const stopping = delay(1_000).then(() => first?.kill('SIGTERM'))
  const account = await reopening(turn, streams, seconds)
  await stopping
  return new Map([[number(streams), account]])
}

async function reopening({ streaming, visitors }: Turn, streams: number, seconds: number): Promise<Figures> {
  await visitors({ do: 'takeFigures' })
  const flows = [{ from: 0, count: streams, rate: 500, leastBytes: 256, mostBytes: 2048 }]
  const { published } = await streaming.publisher.call<{ published: number }>({ do: 'flows', flows, seconds })
  await visitors({ do: 'wait', events: published, withinMs: 30_000 })
  await delay(300)
  const { events, doubles, p99, reopened } = await visitors<StreamFigures>({ do: 'takeFigures' })
  return {
    ...{ reopened: reopened.reduce((sum, each) => sum + each, 0), mostInATenth: Math.max(0, ...reopened) },
    ...{ backAfter: reopened.length / 10, p99, lost: published - events, doubles },
  }
}
