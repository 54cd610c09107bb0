import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '@connectrpc/connect'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { connectService } from '../../core-client/index.ts'
import { startCommandProcess } from '../../test/support/processes.ts'
import { clock } from '../commands.ts'
import type { Part } from '../part.ts'
import { cellOf, type Table } from '../table.ts'
import { type Backlog, openBacklog } from './backlog.ts'
import type { Delivering } from './contenders/contender.ts'
import { startOurs } from './contenders/ours.ts'
import { drain, type Figures, steady, stopWorker } from './steps.ts'

const day = 86_400_000

/**
 * Measures what does not depend on other contenders: many destinations, many finished deliveries,
 * and a subscription with many waiting deliveries that is disabled and enabled.
 */
export const queuePart: Part = async ({ rounds, quick, full, only, profile, log }) => {
  const sizes = {
    drained: quick ? 1_000 : 5_000,
    destinations: quick ? 1_000 : 10_000,
    finished: full ? 10_000_000 : quick ? 50_000 : 1_000_000,
    held: quick ? 5_000 : 100_000,
    seconds: quick ? 4 : 10,
  }
  const isChosen = (name: string) => only.length === 0 || only.includes(name)
  const receiver = await startCommandProcess({ entry: 'bench/delivery/receiver.ts' })
  const receiverPort = await receiver.call<number>({ do: 'port' })
  const { delivering, core } = await startOurs(receiverPort, profile)
  const tables: Table[] = []

  /** Drains deliveries that are written to the database, once for each list of destinations. */
  async function drainEach(backlog: Backlog, lists: string[][]): Promise<Figures[]> {
    const figures: Figures[] = []
    for (const destinations of lists) {
      const fill: Delivering['fill'] = (count) => backlog.write(count, destinations, {})
      await delay(500)
      figures.push(await drain({ ...delivering, fill }, receiver, sizes.drained))
      log(`  ${destinations.length} destinations: ${Math.round(figures.at(-1)?.rate ?? 0)} deliveries/s`)
    }
    return figures
  }

  await stopWorker(delivering)
  await delivering.fill(50)
  const backlog = await openBacklog(core.mongodbUri)
  delivering.worker().kill('SIGCONT')
  try {
    const few = (await backlog.addDestinations(0)).slice(0, 50)
    await drainEach(backlog, [few])
    if (isChosen('hold')) tables.push(await holdAndRelease(backlog))
    if (isChosen('finished')) {
      const before = await repeat(() => drainEach(backlog, [few]))
      await backlog.write(sizes.finished, few, {
        status: 'accepted',
        dueAt: undefined,
        body: undefined,
        deleteAt: new Date(Date.now() + day),
      })
      log(`${sizes.finished.toLocaleString('en')} finished deliveries written`)
      const after = await repeat(() => drainEach(backlog, [few]))
      tables.push(
        drainTable('Drain beside finished deliveries', [
          ['none', before],
          [sizes.finished.toLocaleString('en'), after],
        ]),
      )
    }
    if (isChosen('destinations')) {
      const many = (await backlog.addDestinations(sizes.destinations)).slice(-sizes.destinations)
      const both = await repeat(() => drainEach(backlog, [few, many]))
      tables.push(
        drainTable('Drain of few and many destinations', [
          [String(few.length), both.filter((_, index) => index % 2 === 0)],
          [sizes.destinations.toLocaleString('en'), both.filter((_, index) => index % 2 === 1)],
        ]),
      )
    }
  } finally {
    await backlog.close()
    await delivering.stop()
  }
  return tables

  async function repeat(measure: () => Promise<Figures[]>): Promise<Figures[]> {
    const all: Figures[] = []
    for (let round = 0; round < rounds; round += 1) all.push(...(await measure()))
    return all
  }

  async function holdAndRelease(queued: Backlog): Promise<Table> {
    const { serviceToken } = JSON.parse(await readFile(join(core.dataDir, 'demo.json'), 'utf8'))
    const { transport, stop } = await connectService({ urls: [core.url], token: serviceToken })
    const leads = createClient(LeadService, transport)
    const [subscriptionId = ''] = (await queued.addDestinations(1)).slice(-1)
    const next = { attemptId: 'att_next', correlationId: 'next' }
    const dueAt = new Date(Date.now() + day)
    await queued.write(sizes.held, [subscriptionId], { status: 'retry_scheduled', next, dueAt })
    const change = async (status: SubscriptionStatus) => {
      const began = clock()
      await leads.updateSubscription({ subscriptionId, status })
      return clock() - began
    }
    const measure = async () => {
      const figures = await steady(delivering, receiver, sizes.seconds)
      log(`  steady: median ${figures.p50?.toFixed(1)} ms, 95th percentile ${figures.p95?.toFixed(1)} ms`)
      return figures
    }
    const rows: [name: string, answerMs: number, figures: Figures][] = [['before', Number.NaN, await measure()]]
    for (const [name, status, count] of [
      ['holding', SubscriptionStatus.DISABLED, sizes.held],
      ['releasing', SubscriptionStatus.ENABLED, 0],
    ] as const) {
      const answerMs = await change(status)
      log(`  ${name}: answered in ${answerMs.toFixed(1)} ms`)
      rows.push([name, answerMs, await measure()])
      const began = clock()
      while ((await queued.countHeld()) !== count) await delay(500)
      log(`  ${name}: completed ${Math.round((clock() - began) / 1000)} s later`)
    }
    stop()
    rows.push(['after', Number.NaN, await measure()])
    return {
      title: `Holding and releasing ${sizes.held.toLocaleString('en')} deliveries of one destination, others at 100/s`,
      columns: ['', 'answer', 'median of others', '95th percentile of others'],
      rows: rows.map(([name, answerMs, figures]) => ({
        name,
        cells: [
          { values: Number.isNaN(answerMs) ? [] : [answerMs], unit: 'ms', digits: 1, missing: '' },
          { values: [figures.p50 ?? 0], unit: 'ms', digits: 1 },
          { values: [figures.p95 ?? 0], unit: 'ms', digits: 1 },
        ],
      })),
      notes: [],
    }
  }

  function drainTable(title: string, rows: [name: string, figures: Figures[]][]): Table {
    return {
      title: `${title}, ${sizes.drained.toLocaleString('en')} deliveries`,
      columns: ['', 'deliveries/s', 'CPU time per delivery, worker and store', 'lost', 'duplicates'],
      rows: rows.map(([name, figures]) => ({
        name,
        cells: [
          cellOf(figures, ({ rate = 0 }) => rate, '', 0),
          cellOf(figures, ({ cpuMicros = 0 }) => cpuMicros, 'µs', 0),
          cellOf(figures, ({ missing = 0 }) => missing, '', 0),
          cellOf(figures, ({ doubles = 0 }) => doubles, '', 0),
        ],
      })),
      notes: [],
    }
  }
}
