import { execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { atFileEnd } from '../support/clean-up.ts'
import { inheritedEnvironment } from '../support/processes.ts'
import { copyWithChanges } from '../support/source-copy.ts'
import { knownSuspicions } from './known-suspicions.ts'

/** Status of each test of `suspicions.long.test.ts` in a copy of the source with all faults. */
let statuses: Map<string, string>

beforeAll(async () => {
  const folder = await copyWithChanges(knownSuspicions.flatMap(({ changes }) => changes))
  atFileEnd(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'results.json')
  const reporting = ['--reporter=json', `--outputFile=${file}`]
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--mode',
    'long',
    'test/replica-set/suspicions.long.test.ts',
    ...reporting,
  ]
  const options = { cwd: folder, env: inheritedEnvironment(), maxBuffer: 1e8 }
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, args, options, (_error, stdout, stderr) => resolve(stdout + stderr))
  })
  const written = await readFile(file, 'utf8').catch(() => {
    throw new Error(`the tests did not run:\n${output}`)
  })
  const results = JSON.parse(written).testResults[0].assertionResults as { title: string; status: string }[]
  statuses = new Map(results.map(({ title, status }) => [title, status]))
}, 600_000)

it.each(knownSuspicions)('the double finds that $name', ({ test }) => {
  expect(statuses.get(test)).toBe('failed')
})

it('the test that has no fault put back still passes', () => {
  expect(statuses.get('loses no wake-ups while both secondaries are late')).toBe('passed')
})
