import { expect, it, onTestFinished } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { createCoreMetrics } from '../metrics.ts'
import { openDatabase } from './database.ts'

const { uri, name } = testDatabase({ isNew: true })

it('measures commands of each kind with the metrics of their client, and counts failures', async () => {
  const metrics = [createCoreMetrics(), createCoreMetrics()]
  const opened = await Promise.all(metrics.map((each) => openDatabase({ uri, name, timeoutMs: 5_000, metrics: each })))
  onTestFinished(() => Promise.all(opened.map(({ close }) => close())).then(() => {}))
  const { conversations } = opened[0]!.collections
  const counts = async (index: number) => {
    const { values } = await metrics[index]!.databaseDuration.get()
    const found = values.filter(({ metricName }) => metricName?.endsWith('_count'))
    return Object.fromEntries(found.map(({ labels, value }) => [labels.command, value]))
  }
  const before = [await counts(0), await counts(1)]

  await conversations.find().toArray()
  await conversations.updateOne({ conversationId: 'none' }, { $set: { workspaceId: 'none' } })
  await opened[0]!.ping()
  await conversations
    .aggregate([{ $nonsense: 1 }] as never)
    .toArray()
    .catch(() => {})

  const after = await counts(0)
  for (const command of ['find', 'update', 'hello']) {
    expect([command, after[command]]).toEqual([command, (before[0]![command] ?? 0) + 1])
  }
  expect(await counts(1)).toEqual(before[1])
  expect((await metrics[0]!.databaseFailures.get()).values).toEqual([
    expect.objectContaining({ labels: { command: 'aggregate' }, value: 1 }),
  ])
})
