// `npm run chaos -- bugs`: inserts each known bug into a copy of the source and checks that a chaos run detects it.
import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { copyWithChanges } from '../support/source-copy.ts'
import { rules } from './checker.ts'
import { type KnownBug, knownBugs } from './known-bugs.ts'

const maxSeeds = 4
const minutesPerRun = 0.2

let found = 0
const filters = process.argv.slice(2)
const bugs = knownBugs.filter(({ name }) => filters.length === 0 || filters.some((word) => name.includes(word)))
for (const bug of bugs) {
  const folder = await copyWithChanges(bug.changes)
  try {
    const result = await runUntilFound(folder, bug)
    if (result.by.length > 0) found += 1
    const how = result.by.length > 0 ? `found by: ${result.by.join('; ')}` : 'NOT FOUND'
    console.log(`${bug.name}\n    ${how}, after ${result.operations} operations`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
console.log(`${found} of ${bugs.length} bugs found`)
process.exitCode = found === bugs.length ? 0 : 1

async function runUntilFound(folder: string, bug: KnownBug): Promise<{ by: string[]; operations: number }> {
  let operations = 0
  for (let seed = 1; seed <= maxSeeds; seed += 1) {
    const output = await runSuite(folder, bug, seed)
    const [, count] = /(\d+) operations, violations: \d+/.exec(output) ?? []
    if (count === undefined) {
      console.error(`the suite did not run; trying the next seed:\n${output}`)
      continue
    }
    operations += Number(count)
    const by = Object.values(rules).filter((rule) => output.includes(`\n${rule}: `))
    if (by.length > 0) return { by, operations }
  }
  return { by: [], operations }
}

function runSuite(folder: string, { faults, minutes = minutesPerRun }: KnownBug, seed: number): Promise<string> {
  const args = ['--seed', String(seed), '--minutes', String(minutes), '--faults', faults.join(',')]
  const options = { cwd: folder, maxBuffer: 1e8 }
  return new Promise((resolve) => {
    execFile(process.execPath, ['test/chaos/main.ts', ...args], options, (_error, stdout, stderr) =>
      resolve(stdout + stderr),
    )
  })
}
