import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { atFileEnd } from '../support/clean-up.ts'
import { inheritedEnvironment } from '../support/processes.ts'
import { copyWithChanges, type SourceChange } from '../support/source-copy.ts'
import { startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { seededFaults } from './seeded-faults.ts'

const database = testDatabase()
let deployments = 0

/** Starts a core and a gateway from a changed copy of the source. Checks them like a remote deployment. */
async function check(changes: SourceChange[], args: string[], env: Record<string, string> = {}) {
  const root = await copyWithChanges(changes)
  atFileEnd(() => rm(root, { recursive: true, force: true }))
  deployments += 1
  const stack = await startStack({ database: { ...database, name: `${database.name}-${deployments}` }, root, env })
  const target = join(stack.dataDir, 'target.json')
  await writeFile(target, JSON.stringify({ ...stack.demo, gatewayUrl: stack.gateways[0]!.url }), { mode: 0o600 })
  const run = await runCommand(['--target', target, ...args])
  for (const part of [...stack.gateways, ...stack.cores]) await part.process().stop()
  return run
}

/** Runs the command in an environment without Vitest's variables. */
function runCommand(args: string[]): Promise<{ code: number; output: string }> {
  const options = { env: inheritedEnvironment(), maxBuffer: 1e8 }
  return new Promise((resolve) => {
    execFile(process.execPath, [join(import.meta.dirname, 'main.ts'), ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? 1 : 0, output: stdout + stderr }),
    )
  })
}

it('a deployment with the default settings passes all rules whose tests need only addresses and credentials', async () => {
  const { code, output } = await check([], [])
  expect(code, output).toBe(0)
  const [, skipped, all] = /(\d+) of (\d+) tests need more/.exec(output) ?? []
  expect(Number(all) - Number(skipped)).toBeGreaterThan(140)
})

it('the seeded faults violate at least twenty rules', () => {
  expect(new Set(seededFaults.map(({ rule }) => rule)).size).toBeGreaterThanOrEqual(20)
})

it.each(seededFaults)(
  'the conformance check reports a violation of rule $rule if the service $name',
  async ({ rule, changes }) => {
    const { code, output } = await check(changes, ['--rules', rule], { HEARTBEAT_SECONDS: '1' })
    expect(code, output).not.toBe(0)
    expect(output).toMatch(new RegExp(`(FAIL|×).* ${rule.replace('.', '\\.')} `))
  },
)
