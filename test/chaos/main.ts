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
    faults: { type: 'string' },
    'replica-set': { type: 'boolean', default: false },
  },
})
const simulated = values['replica-set'] ? await startSimulatedSet() : undefined
const database = simulated?.database ?? chaosDatabase()
const possible = simulated ? simulatedFaults : database ? clusterFaults : localFaults
const selected = (values.faults?.split(',') ?? possible) as FaultName[]
const unknown = selected.filter((name) => !possible.includes(name))
const numbers = [values.seed, values.minutes, values.visitors].map(Number)
const [seed = 0, minutes = 0, visitors = 0] = numbers
if (unknown.length > 0 || !numbers.every((number) => number > 0)) {
  console.error(`--seed, --minutes and --visitors must be above 0; --faults must be among ${possible.join(', ')}`)
  process.exit(2)
}

console.log(`seed ${seed}, ${minutes} min, ${visitors} visitors`)
const report = await runChaos({
  seed,
  seconds: minutes * 60,
  visitors,
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
