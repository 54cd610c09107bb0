import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { faultNames } from './faults.ts'
import { knownBugs } from './known-bugs.ts'
import { runChaos } from './run.ts'

it('finds no violation in a short chaos run with all faults', {
  timeout: 180_000,
}, async () => {
  const lines: string[] = []
  const say = (line: string) => void lines.push(line)
  const report = await runChaos({ seed: 1, seconds: 12, visitors: 6, faults: faultNames, say })
  expect(report.violations, lines.join('\n')).toEqual([])
  expect(report.operations).toBeGreaterThan(50)
})

it.each(knownBugs.flatMap(({ name, changes }) => changes.map((change) => ({ name, ...change }))))(
  '$file contains the source that the known bug replaces: $name',
  async ({ file, from }) => {
    const source = await readFile(join(import.meta.dirname, '../..', file), 'utf8')
    expect(source.split(from)).toHaveLength(2)
  },
)
