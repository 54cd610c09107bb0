import { MongoClient } from 'mongodb'
import { operatorOf } from '../test/support/operator.ts'
import { fill, newConversations, perConversation } from './filling.ts'
import type { LoadCommand } from './load.ts'
import { amount, type Figures, type Part } from './measure.ts'
import { inParts } from './service.ts'

const command: LoadCommand = { do: 'requests', kind: 'send', connections: 1, times: 500 }

export const part: Part = async ({ rounds, quick, full, profile, log }) => {
  const messages = full ? 1_000_000 : quick ? 20_000 : 200_000
  const { service, work, stop } = await inParts.start({ profile })
  const { access } = service
  const at = () => new Date(Date.now() - 100 * 86_400_000)
  await fill(access, { conversations: newConversations('old', messages / perConversation), areNew: true, at })
  log(`${amount(messages)} messages written`)
  const client = new MongoClient(access.mongodbUri)
  const db = client.db(access.database)
  const left = () => db.collection('conversations').countDocuments({ _id: { $regex: /^cnv_old/ } as never })
  const isRemoving = async () => (await db.collection('removals').countDocuments({ stage: 'removing' })) > 0

  await work(command)
  const { workspaces } = operatorOf(access.coreUrl, access.serviceToken)
  const retention = { conversations: { period: { case: 'days' as const, value: 30 } } }
  await workspaces.updateWorkspace({ workspaceId: access.workspaceId, retention })
  const began = performance.now()
  const idle: Figures[] = []
  const during: Figures[] = []
  for (let remaining = await left(); remaining > 0; ) {
    const since = performance.now()
    const removing = [await isRemoving()]
    const figures = await work(command)
    removing.push(await isRemoving())
    const now = await left()
    const removedPerSecond = ((remaining - now) * perConversation * 1000) / (performance.now() - since)
    if (removing.every(Boolean)) during.push({ ...figures, removedPerSecond })
    else if (!removing.includes(true) && now === remaining) idle.push(figures)
    remaining = now
    log(`${amount(now)} conversations left, ${removing.join(' to ')}, p99 ${figures.p99?.toFixed(2)} ms`)
  }
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  for (let round = 0; round < 2 * rounds; round += 1) idle.push(await work(command))
  await client.close()
  await stop()
  const cellOf = (figures: Figures[], name: string, unit: string, digits: number) => ({
    ...{ values: figures.flatMap((each) => each[name] ?? []), unit, digits, missing: '' },
  })
  const row = (name: string, figures: Figures[]) => ({
    name,
    cells: [
      cellOf(figures, 'p50', 'ms', 2),
      cellOf(figures, 'p99', 'ms', 2),
      cellOf(figures, 'removedPerSecond', '', 0),
    ],
  })
  return [
    {
      title: `Sends during the sweep of ${amount(messages)} messages`,
      columns: ['', 'median', '99th percentile', 'messages removed per second'],
      rows: [row('while nothing is removed', idle), row('while messages are removed', during)],
      notes: [
        `Each figure is of 500 sends, one at a time. The sweep took ${seconds} s: it waits a minute between hiding and removing.`,
      ],
    },
  ]
}
