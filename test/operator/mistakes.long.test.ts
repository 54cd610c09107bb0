import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { coreCertificates } from '../support/certificates.ts'
import { someOf } from '../support/is-long.ts'
import { freePort, startProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { brokenFolders, type Mistake, mistakes } from './mistakes.ts'

const entries = {
  core: 'core/main.ts',
  gateway: 'gateway/main.ts',
  delivery: 'delivery/main.ts',
  migrate: 'core/migrate.ts',
  token: 'core/token.ts',
  admin: 'admin/main.ts',
  secrets: 'dev/make/secrets.ts',
  start: 'dev/start.ts',
  serve: 'serve/main.ts',
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
for (const [name, { file, content, isUnreadable }] of Object.entries(brokenFolders)) {
  mkdirSync(join(folder, name), { mode: 0o700 })
  if (isUnreadable) mkdirSync(join(folder, name, file))
  else writeFileSync(join(folder, name, file), content, { mode: 0o600 })
}

const takenPort = String((taken.address() as { port: number }).port)
const all = mistakes({ takenPort, folder, mongodbUri: testDatabase().uri })

it('the table has at least 85 mistakes, each with a name of its own', () => {
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length)
  expect(all.length).toBeGreaterThanOrEqual(85)
})

const chosen = someOf(all, 12)
const results = new Map<string, { code: number | null; output: string }>()

async function run({ name, part, isLocal, env = {}, args = [], says }: Mistake): Promise<void> {
  const given: Record<string, string> = { DATA_DIR: folder, LOG_LEVEL: 'fatal', ...env }
  for (const [setting, value] of Object.entries(given)) if (value === 'free') given[setting] = String(await freePort())
  const failed = await startProcess({ entry: isLocal ? 'dev/core.ts' : entries[part], env: given, args })
  // A gateway without a token waits for a core to create one.
  if (says.includes('waiting')) {
    await until('the line', () => failed.output().includes(says))
    failed.kill('SIGKILL')
    results.set(name, { code: 2, output: failed.output() })
  } else {
    // A process that starts despite the mistake is killed, and its code is null.
    const tooLong = setTimeout(() => failed.kill('SIGKILL'), 90_000)
    const { code } = await failed.exited
    clearTimeout(tooLong)
    results.set(name, { code, output: failed.output() })
  }
}

// A few processes start at once, because most of the time of a start is waiting.
beforeAll(async () => {
  const left = [...chosen]
  const runSome = async () => {
    for (let next = left.pop(); next; next = left.pop()) await run(next)
  }
  await Promise.all(Array.from({ length: 4 }, runSome))
}, 600_000)

it.each(chosen)(
  '$name stops with one line that says what is wrong, without a stack',
  ({ name, part, says, code = 2 }) => {
    expect(results.get(name)).toEqual({ code, output: expect.stringContaining(says) })
    const lines = results.get(name)!.output.trim().split('\n')
    expect(lines).toHaveLength(1)
    expect(lines[0]).not.toContain('PRIVATE')
    expect(lines[0]).toMatch(new RegExp(`^${part}: `))
    expect(lines[0]!.length).toBeLessThan(330)
  },
)
