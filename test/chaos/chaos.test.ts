import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { faultNames } from './faults.ts'
import { knownBugs } from './known-bugs.ts'
import { runChaos } from './run.ts'

it('what is promised holds while parts die, hang and are cut off: the short form of `npm run chaos`', {
  timeout: 180_000,
}, async () => {
  const said: string[] = []
  const say = (line: string) => void said.push(line)
  const report = await runChaos({ seed: 1, seconds: 12, visitors: 6, faults: faultNames, say })
  expect(report.violations, said.join('\n')).toEqual([])
  expect(report.operations).toBeGreaterThan(50)
})

it.each(knownBugs.flatMap(({ name, changes }) => changes.map((change) => ({ name, ...change }))))(
  'the place of a known bug is there: $name, $file',
  async ({ file, from }) => {
    const source = await readFile(join(import.meta.dirname, '../..', file), 'utf8')
    expect(source.split(from)).toHaveLength(2)
  },
)
