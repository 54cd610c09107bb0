import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../commands.ts'
import { usageOf } from '../usage.ts'
import { openFiles, residentBytes, slabBytes } from './memory.ts'
import { cpuBetween, type Turn } from './turn.ts'
import type { Account } from './visitors.ts'

export type Figures = Record<string, number>
/** Figures by variant of a step. */
export type Variants = Map<string, Figures>

const number = (value: number) => value.toLocaleString('en')
/** Streams of the warm-up, which loads code and opens connections. */
const warmUpStreams = 50

async function warmUp({ open, each, visitors }: Turn): Promise<void> {
  await open({ from: 0, count: warmUpStreams })
  await each({ from: 0, count: warmUpStreams, times: 2 })
  await visitors({ do: 'cut' })
  await delay(500)
}

/** W1: open streams with heartbeats only. */
export async function hold(turn: Turn, counts: number[], seconds: number): Promise<Variants> {
  const { streaming, gateways, behind, open } = turn
  const found: Variants = new Map()
  await warmUp(turn)
  const heapBefore = await streaming.heapBytes()
  const before = {
    gateway: await residentBytes(gateways),
    behind: await residentBytes(behind),
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
      gatewayKb: perStream(await residentBytes(gateways), before.gateway),
      slabKb: perStream(await slabBytes(), before.slab),
      gatewayMicros: perSecond(0),
    }
    if (behind.length > 0) {
      figures.behindKb = perStream(await residentBytes(behind), before.behind)
      figures.behindMicros = perSecond(1)
    }
    const heap = await streaming.heapBytes()
    if (heap && heapBefore) figures.heapKb = perStream(heap.gateway, heapBefore.gateway)
    if (heap && heapBefore && behind.length > 0) figures.behindHeapKb = perStream(heap.behind, heapBefore.behind)
    found.set(number(count), figures)
  }
  return found
}

/** W3: events of 256 bytes to 2 KB to random visitors. */
export async function chat(turn: Turn, streams: number, rates: number[], seconds: number): Promise<Variants> {
  const found: Variants = new Map()
  const flow = (rate: number) => [{ from: 0, count: streams, rate, leastBytes: 256, mostBytes: 2048 }]
  await turn.open({ from: 0, count: streams })
  // Warm-up, so that the code is compiled.
  await turn.flow(flow(rates[0] ?? 500), seconds)
  for (const rate of rates) found.set(`${number(rate)}/s`, await turn.flow(flow(rate), seconds))
  return found
}

/** W5: all connections break, events are published, and all visitors reconnect at once. */
export async function storm(turn: Turn, count: number, missed: number[]): Promise<Variants> {
  const { streaming, gateways, behind, open, visitors, each } = turn
  const found: Variants = new Map()
  const range = { from: 0, count }
  await open(range)
  // Gives each stream a position. The first storm is not counted.
  await each({ ...range, times: 1 })
  for (const [turnOfIt, times] of [0, ...missed].entries()) {
    await visitors({ do: 'cut' })
    await delay(500)
    if (times > 0) await streaming.fill({ ...range, times })
    await delay(500)
    await visitors({ do: 'account' })
    const before = await Promise.all([usageOf(gateways), usageOf(behind)])
    const ms = await open({ ...range, inFlight: count, events: times })
    const after = await Promise.all([usageOf(gateways), usageOf(behind)])
    await delay(300)
    const { events, doubles } = await visitors<Account>({ do: 'account' })
    const perVisitor = (index: 0 | 1) => (cpuBetween(before[index], after[index]) / count) * 1e6
    const lost = count * times - events
    if (turnOfIt === 0) continue
    found.set(`${number(times)} missed`, {
      ...{ ms, gatewayMicros: perVisitor(0), behindMicros: perVisitor(1), lost, doubles },
    })
  }
  return found
}

/** W7: one visitor in a hundred stops reading while it gets events of 12 KB. The others read normally. */
export async function slow(turn: Turn, streams: number, seconds: number): Promise<Variants> {
  const { gateways, open, flow, visitors } = turn
  const stalled = streams / 100
  const toSlow = { from: 0, count: stalled, rate: 400, leastBytes: 4_000, mostBytes: 4_000, wide: true }
  const toOthers = { from: stalled, count: streams - stalled, rate: 200, leastBytes: 256, mostBytes: 2048 }
  await open({ from: 0, count: streams })
  await flow([toOthers], 3)
  const all = await flow([toSlow, toOthers], seconds)
  const [filesBefore, memoryBefore] = [await openFiles(gateways), await residentBytes(gateways)]
  await visitors({ do: 'stall', count: stalled })
  let cutAfter = Number.NaN
  let mostMemory = 0
  const began = clock()
  const watching = setInterval(async () => {
    mostMemory = Math.max(mostMemory, await residentBytes(gateways))
    if (Number.isNaN(cutAfter) && (await openFiles(gateways)) <= filesBefore - stalled) {
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

/** W9: one of two gateways stops under load; its visitors reconnect to the other. */
export async function drain(turn: Turn, streams: number, seconds: number): Promise<Variants> {
  const { streaming, open, visitors, each } = turn
  await open({ from: 0, count: streams })
  // Gives each stream a position for its resume.
  await each({ from: 0, count: streams, times: 1 })
  await visitors({ do: 'follow', on: true })
  const [first] = streaming.gateways
  const stopping = delay(1_000).then(() => first?.kill('SIGTERM'))
  const account = await reopening(turn, streams, seconds)
  await stopping
  return new Map([[number(streams), account]])
}

async function reopening({ streaming, visitors }: Turn, streams: number, seconds: number): Promise<Figures> {
  await visitors({ do: 'account' })
  const flows = [{ from: 0, count: streams, rate: 500, leastBytes: 256, mostBytes: 2048 }]
  const { published } = await streaming.publisher.call<{ published: number }>({ do: 'flows', flows, seconds })
  await visitors({ do: 'wait', events: published, withinMs: 30_000 })
  await delay(300)
  const { events, doubles, p99, reopened } = await visitors<Account>({ do: 'account' })
  return {
    ...{ reopened: reopened.reduce((sum, each) => sum + each, 0), mostInATenth: Math.max(0, ...reopened) },
    ...{ backAfter: reopened.length / 10, p99, lost: published - events, doubles },
  }
}
