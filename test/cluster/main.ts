// `MONGODB_URI=… npm run verify -- cluster`: runs tests, chaos and benches on a replica set. Creates databases whose
// names begin with `test-` and `service-cluster-`, and drops them. `npm run verify -- cluster --simulated` runs them
// on a simulated replica set, without the benches. `--only STEP` runs one step.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { MongoClient } from 'mongodb'
import { startSimulatedSet } from '../chaos/simulated-set.ts'
import { takeClusterUri } from './config.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '3' },
    simulated: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
})
const simulated = values.simulated ? await startSimulatedSet() : undefined
const database = `service-cluster-${randomBytes(4).toString('hex')}`
// On a busy machine, the set answers late, because all its members are one process.
const patience = ['connect', 'socket', 'serverSelection', 'waitQueue'].map((name) => `&${name}TimeoutMS=30000`).join('')
const uri = takeClusterUri(database, simulated && `${simulated.database.uri}${patience}`)
if (uri === undefined) {
  console.error('Set MONGODB_URI to the URI of a replica set.')
  process.exit(2)
}

const vitest = ['node_modules/vitest/vitest.mjs', 'run']
const chaos = ['test/chaos/main.ts', '--minutes', values.minutes]
const all: [name: string, args: string[]][] = [
  ['conversations', [...vitest, 'test/conformance/', 'core/log', 'core/conversations', 'core/wakeups']],
  ['deliveries', [...vitest, 'test/end-to-end/lead-delivery.test.ts', 'core/deliveries']],
  ['indexes and migrations', [...vitest, 'core/database']],
  ['chaos', simulated ? [...chaos, '--replica-set'] : chaos],
  ['bench of sends', ['bench/main.ts', 'send', '--quick', '--only', '64']],
  ['bench of the latency', ['bench/main.ts', 'latency', '--quick']],
]

const steps = all.filter(([name]) => (values.only ?? name) === name && !(simulated && name.startsWith('bench')))

const client = new MongoClient(uri)
const results: [string, string][] = []
try {
  const hello = await client.db('admin').command({ hello: 1 })
  const { version } = await client.db('admin').command({ buildInfo: 1 })
  const kind = hello.setName ? `replica set ${hello.setName} with ${hello.hosts?.length ?? 0} members` : 'single server'
  console.log(`MongoDB ${version}, ${kind}`)
  for (const [name, args] of steps) {
    console.log(`\n== ${name}`)
    const code = await run(args)
    results.push([name, code === 0 ? 'passed' : `FAILED with code ${code}`])
  }
  if (hello.setName === undefined)
    results.push(['elections', 'NOT TESTED: the database is no replica set, so no primary can step down'])
  else if ((hello.hosts?.length ?? 0) < 3)
    results.push(['elections', 'NOT TESTED: a replica set needs three members to elect another primary'])
} finally {
  const { databases } = await client.db('admin').admin().listDatabases({ nameOnly: true })
  for (const { name } of databases.filter(({ name }) => name.startsWith(database))) await client.db(name).dropDatabase()
  await client.close()
  await simulated?.stop()
}
console.log('')
for (const [name, result] of results) console.log(`${name.padEnd(24)} ${result}`)
if (results.some(([, result]) => result !== 'passed')) process.exitCode = 1

async function run(args: string[]): Promise<number> {
  const child = spawn(process.execPath, args, { cwd: join(import.meta.dirname, '../..'), stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  return code ?? 1
}
