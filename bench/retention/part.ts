import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { operatorOf } from '../../test/support/operator.ts'
import { startCommandProcess } from '../../test/support/processes.ts'
import type { Measured, ReaderCommand } from '../history/reader.ts'
import type { Part } from '../part.ts'
import { startCore, startGateway } from '../service.ts'
import { cellOf } from '../table.ts'
import { perConversation, writeOldConversations } from './old-data.ts'

const sendsPerMeasure = 500

/**
 * Measures the latency of sends while a sweep removes old messages, and while no removal is
 * running.
 */
export const retentionPart: Part = async ({ rounds, quick, full, profile, log }) => {
  const messages = full ? 1_000_000 : quick ? 20_000 : 200_000
  const core = await startCore({ profile, env: { GRANT_LIFETIME_SECONDS: '86400' } })
  const gateway = await startGateway(core, { profile })
  const demoFile = join(core.dataDir, 'demo.json')
  const { serviceToken, workspaceId } = JSON.parse(await readFile(demoFile, 'utf8'))
  const began = performance.now()
  await writeOldConversations(core.mongodbUri, messages / perConversation)
  log(`${messages.toLocaleString('en')} messages written in ${seconds(began)} s`)
  const sender = await startCommandProcess({
    entry: 'bench/history/reader.ts',
    args: [demoFile, String(gateway.port)],
  })
  const measure = () =>
    sender.call<Measured>({ do: 'measure', action: 'send', count: sendsPerMeasure } satisfies ReaderCommand)
  const client = new MongoClient(core.mongodbUri)
  const db = client.db('service')
  const left = () => db.collection('conversations').countDocuments({ _id: { $regex: /^cnv_old/ } as never })
  const isRemoving = async () => (await db.collection('removals').countDocuments({ stage: 'removing' })) > 0

  await measure()
  const { workspaces } = operatorOf(core.url, serviceToken)
  await workspaces.updateWorkspace({
    workspaceId,
    retention: { conversations: { period: { case: 'days', value: 30 } } },
  })
  const sweepBegan = performance.now()
  const idle: Measured[] = []
  const during: (Measured & { removedPerSecond: number })[] = []
  for (let remaining = await left(); remaining > 0; ) {
    const at = performance.now()
    const removing = [await isRemoving()]
    const measured = await measure()
    removing.push(await isRemoving())
    const now = await left()
    const removedPerSecond = ((remaining - now) * perConversation * 1000) / (performance.now() - at)
    if (removing.every(Boolean)) during.push({ ...measured, removedPerSecond })
    else if (!removing.includes(true) && now === remaining) idle.push(measured)
    remaining = now
    const state = removing.every(Boolean) ? 'removing' : removing.includes(true) ? 'both' : 'waiting'
    log(`${now.toLocaleString('en')} conversations left, ${state}, p99 ${measured.p99.toFixed(2)} ms`)
  }
  const total = Number(seconds(sweepBegan))
  for (let round = 0; round < 2 * rounds; round += 1) {
    const measured = await measure()
    idle.push(measured)
    log(`nothing left, p99 ${measured.p99.toFixed(2)} ms`)
  }
  await client.close()
  for (const each of [sender, gateway.running, core.running]) await each.stop()
  const row = (name: string, figures: Measured[]) => ({
    name,
    cells: [cellOf(figures, ({ p50 }) => p50, 'ms', 2), cellOf(figures, ({ p99 }) => p99, 'ms', 2)],
  })
  return [
    {
      title: `Sends during the sweep of ${messages.toLocaleString('en')} messages`,
      columns: ['', 'median', '99th percentile'],
      rows: [row('while nothing is removed', idle), row('while messages are removed', during)],
      notes: [
        `The sweep took ${total} s with its waiting times. While it removed, it removed ${Math.round(
          during.reduce((sum, each) => sum + each.removedPerSecond, 0) / Math.max(1, during.length),
        ).toLocaleString('en')} messages per second.`,
        'Each figure is of 500 sends, one at a time. A sweep waits a minute between hiding and removing, so both rows alternate.',
      ],
    },
  ]
}

const seconds = (since: number) => ((performance.now() - since) / 1000).toFixed(0)
