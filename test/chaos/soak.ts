// `npm run chaos -- soak --minutes 10`: runs clients at a steady load without faults. Fails if the memory, files or
// sockets of a process grow. Also fails if a collection grows by more documents than the writes of the clients allow.
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Db, MongoClient } from 'mongodb'
import { scrape, sumOf } from '../support/metrics.ts'
import { openFiles } from '../support/proc.ts'
import { allowedGrowth, exceedsAllowance, grownCollections, growthOf, type Sample } from './growth.ts'
import { runWith } from './run.ts'
import type { Part } from './service.ts'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '5' }, visitors: { type: 'string', default: '20' } },
})
const [minutes = 0, visitors = 0] = [values.minutes, values.visitors].map(Number)
if (!(minutes > 0 && visitors > 0)) {
  console.error('--minutes and --visitors must be numbers above 0')
  process.exit(2)
}
const seconds = minutes * 60
const sampleCount = 30

const samples = new Map<string, Sample[]>()
const documents: Record<string, number>[] = []
const report = await runWith({ seed: 1, arrivalSeconds: seconds / 5, visitors, say: console.log }, async (service) => {
  const parts = [...service.gateways, ...service.cores, ...service.workers]
  await using client = new MongoClient(service.engine.uri)
  const db = client.db(service.engine.database)
  for (let count = 0; count < sampleCount; count += 1) {
    await delay((seconds * 1000) / sampleCount)
    for (const part of parts) samples.set(part.name, [...(samples.get(part.name) ?? []), await sampleOf(part)])
    documents.push(await countsOf(db))
  }
})

const rows = [...samples].map(([process, all]) => ({
  process,
  first: all[0]!,
  last: all.at(-1)!,
  grown: growthOf(all),
}))
console.table(
  rows.map(({ process, first, last, grown }) => ({
    process,
    'used memory, MB': `${first.usedMb} → ${last.usedMb} (${grown.usedMb})`,
    handles: `${first.handles} → ${last.handles} (${grown.handles})`,
    sockets: `${first.sockets} → ${last.sockets} (${grown.sockets})`,
  })),
)
const grown = rows.filter((row) => exceedsAllowance(row.grown))
const { usedMb, handles, sockets } = allowedGrowth
console.log(`growth in brackets; allowed: ${usedMb} MB, ${handles} handles and ${sockets} sockets`)
console.log(`documents at the end: ${JSON.stringify(documents.at(-1))}`)
const grownStores = grownCollections(documents)
for (const [name, by] of Object.entries(grownStores)) console.log(`the collection ${name} grew by ${by} documents`)
for (const { rule, what } of report.violations.slice(0, 20)) console.log(`${rule}: ${what}`)
console.log(
  `${report.operations} operations, processes that grew: ${grown.length}, collections that grew: ${Object.keys(grownStores).length}, violations: ${report.violations.length}`,
)
process.exitCode = grown.length + Object.keys(grownStores).length + report.violations.length > 0 ? 1 : 0

async function sampleOf({ pid, metricsPort }: Part): Promise<Sample> {
  const targets = await openFiles(pid())
  const metrics = await scrape(`http://127.0.0.1:${metricsPort}/metrics`)
  const bytes = sumOf(metrics, 'nodejs_heap_size_used_bytes') + sumOf(metrics, 'nodejs_external_memory_bytes')
  return {
    usedMb: Math.round(bytes / 2 ** 20),
    handles: targets.length,
    sockets: targets.filter((target) => target.startsWith('socket:')).length,
  }
}

async function countsOf(db: Db): Promise<Record<string, number>> {
  const collections = await db.collections()
  const counts = await Promise.all(collections.map((each) => each.estimatedDocumentCount()))
  return Object.fromEntries(collections.map(({ collectionName }, index) => [collectionName, counts[index] ?? 0]))
}
