import { expect, it, onTestFinished } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
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
  for (const command of ['find', 'update', 'aggregate']) {
    expect([command, after[command]]).toEqual([command, (before[0]![command] ?? 0) + 1])
  }
  expect(await counts(1)).toEqual(before[1])
  expect((await metrics[0]!.databaseFailures.get()).values).toEqual([
    expect.objectContaining({ labels: { command: 'aggregate' }, value: 1 }),
  ])
})

it('measures collections when they are scraped, without a wait, and not again at the next scrape', async () => {
  const metrics = createCoreMetrics()
  const { collections, close } = await openDatabase({ uri, name, timeoutMs: 5_000, metrics })
  onTestFinished(close)
  await collections.conversations.insertOne({ conversationId: 'one' } as never)
  const measured = async () => (await metrics.collectionBytes.get()).values
  expect(await measured()).toEqual([])
  await until('the measurement', async () => {
    const found = (await measured()).find(({ labels }) => labels.collection === 'conversations')
    return found !== undefined && found.value > 0
  })
  const commands = async () =>
    (await metrics.databaseDuration.get()).values.filter(
      ({ metricName, labels }) => metricName?.endsWith('_count') && labels.command === 'dbStats',
    )
  expect(await commands()).toEqual([expect.objectContaining({ value: 1 })])
})
