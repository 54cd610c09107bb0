import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { inheritedEnvironment } from '../support/processes.ts'

const root = join(import.meta.dirname, '../..')

function run(args: string[]): Promise<{ code: number; output: string }> {
  // Other long tests run at the same time.
  const all = { ...inheritedEnvironment(), VITEST_MAX_WORKERS: '2' }
  const options = { cwd: root, env: all, maxBuffer: 1e8 }
  return new Promise((resolve) => {
    execFile(process.execPath, args, options, (error, stdout, stderr) =>
      resolve({ code: error ? 1 : 0, output: stdout + stderr }),
    )
  })
}

it.each(['conversations', 'deliveries', 'indexes and migrations'])(
  'the tests of %s pass on a simulated replica set',
  async (only) => {
    const { code, output } = await run(['test/cluster/main.ts', '--simulated', '--only', only])
    expect(code, output.slice(-20_000)).toBe(0)
  },
)
