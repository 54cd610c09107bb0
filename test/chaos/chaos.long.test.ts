import { expect, it } from 'vitest'
import { localFaults } from './faults.ts'
import { runChaos } from './run.ts'

it('a short chaos run with all faults finds no violation', { timeout: 180_000 }, async () => {
  const lines: string[] = []
  const say = (line: string) => void lines.push(line)
  const report = await runChaos({ seed: 1, seconds: 12, visitors: 6, faults: localFaults, say })
  expect(report.violations, lines.join('\n')).toEqual([])
  expect(report.operations).toBeGreaterThan(50)
})
