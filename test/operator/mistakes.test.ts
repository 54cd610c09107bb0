import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { coreCertificates } from '../support/core-certificates.ts'
import { isLong, someOf } from '../support/is-long.ts'
import { startProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { mistakes } from './mistakes.ts'

const entries = {
  core: 'core/main.ts',
  gateway: 'gateway/main.ts',
  delivery: 'delivery/main.ts',
  migrate: 'core/migrate.ts',
  token: 'core/token.ts',
  admin: 'admin/main.ts',
  secrets: 'dev/make-secrets.ts',
}

const taken = createServer().listen(0, '::')
await once(taken, 'listening')
const folder = mkdtempSync(join(tmpdir(), 'mistakes-'))
afterAll(() => {
  taken.close()
  rmSync(folder, { recursive: true })
})
const { first, second } = coreCertificates
for (const [name, text] of Object.entries({
  'cert.pem': first.core.cert,
  'key.pem': first.core.key,
  'other-key.pem': second.core.key,
  'garbage.pem': 'nothing',
}))
  writeFileSync(join(folder, name), text)

const takenPort = String((taken.address() as { port: number }).port)
const all = mistakes({ takenPort, folder, mongodbUri: testDatabase().uri })

it('the table has at least 71 mistakes, each with a name of its own', () => {
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length)
  expect(all.length).toBeGreaterThanOrEqual(71)
})

it.each(someOf(all, isLong ? all.length : 12))(
  '$name stops with one line that says what is wrong, without a stack',
  { concurrent: false },
  async ({ part, env, args = [], says, code = 2 }) => {
    const failed = await startProcess({ entry: entries[part], env: { DATA_DIR: folder, LOG_LEVEL: 'fatal', ...env }, args })
    // A gateway without a token waits for a core to create one.
    if (says.includes('waiting')) {
      await until('the line', () => failed.output().includes(says))
      return failed.stop()
    }
    expect({ ...(await failed.exited), output: failed.output() }).toEqual({
      code,
      signal: null,
      output: expect.stringContaining(says),
    })
    const lines = failed.output().trim().split('\n')
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(new RegExp(`^${part}: `))
    expect(lines[0]!.length).toBeLessThan(330)
  },
)
