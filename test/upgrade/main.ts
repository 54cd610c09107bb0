// `npm run verify -- rehearsal`: upgrades a running service from the last release to this source, under traffic.
// Prints broken guarantees. Example: `npm run verify -- rehearsal --from 1.0.0 --seed 7`
import { parseArgs } from 'node:util'
import { rules } from '../chaos/checker.ts'
import { rehearse } from './rehearsal.ts'
import { lastVersion, unpack } from './versions.ts'

const { values } = parseArgs({
  options: {
    from: { type: 'string', default: await lastVersion() },
    seed: { type: 'string', default: '1' },
    visitors: { type: 'string', default: '8' },
  },
})
const old = await unpack(values.from)
try {
  console.log(`from ${values.from} to this source, seed ${values.seed}`)
  const options = { oldRoot: old.root, seed: Number(values.seed), visitors: Number(values.visitors), say: console.log }
  const { operations, observations, violations, killed } = await rehearse(options)
  console.table(observations)
  for (const { rule, what } of violations.slice(0, 50)) console.log(`${rules[rule]}: ${what}`)
  for (const name of killed) console.log(`did not stop by itself: ${name}`)
  console.log(`${operations} operations, violations: ${violations.length}`)
  if (violations.length + killed.length > 0) process.exitCode = 1
} finally {
  await old.remove()
}
