// Runs clients while faults happen, and prints broken guarantees. Example:
// `npm run chaos -- --seed 7 --minutes 10 --faults core-killed,engine-cut`
import { parseArgs } from 'node:util'
import { chaosDatabase } from '../cluster/config.ts'
import { rules } from './checker.ts'
import { clusterFaults, type FaultName, localFaults, simulatedFaults } from './faults.ts'
import { runChaos } from './run.ts'
import { startSimulatedSet } from './simulated-set.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    minutes: { type: 'string', default: '2' },
    visitors: { type: 'string', default: '10' },
    cores: { type: 'string', default: '2' },
    faults: { type: 'string' },
    'replica-set': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const simulated = values['replica-set'] ? await startSimulatedSet() : undefined
const database = simulated?.database ?? chaosDatabase()
const possible = simulated ? simulatedFaults : database ? clusterFaults : localFaults
const selected = (values.faults?.split(',') ?? possible) as FaultName[]
const unknown = selected.filter((name) => !possible.includes(name))
const numbers = [values.seed, values.minutes, values.visitors, values.cores].map(Number)
const [seed = 0, minutes = 0, visitors = 0, cores = 0] = numbers
if (values.help || unknown.length > 0 || !numbers.every((number) => number > 0)) {
  console.error(
    `--seed, --minutes, --visitors and --cores must be above 0; --faults must be among ${possible.join(', ')}`,
  )
  process.exit(values.help ? 0 : 2)
}

console.log(`seed ${seed}, ${minutes} min, ${visitors} visitors, ${cores} ${cores === 1 ? 'core' : 'cores'}`)
const report = await runChaos({
  seed,
  seconds: minutes * 60,
  visitors,
  cores,
  faults: selected,
  say: console.log,
  ...(database && { database }),
  ...(simulated && { replicaSet: simulated.replicaSet }),
})
await simulated?.stop()
console.log('\nfaults')
console.table(report.faults)
console.log('observations')
console.table(report.observations)
for (const { rule, what } of report.violations.slice(0, 50)) console.log(`${rules[rule]}: ${what}`)
if (report.folder) console.log(`the logs and the database are kept in ${report.folder}`)
const faultCount = Object.values(report.faults).reduce((sum, each) => sum + each, 0)
console.log(`${faultCount} faults, ${report.operations} operations, violations: ${report.violations.length}`)
process.exitCode = report.violations.length > 0 ? 1 : 0
