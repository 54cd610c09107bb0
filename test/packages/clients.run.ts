import { execFile, spawn } from 'node:child_process'
import { cp, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { packCoreClient } from '../../dev/make/pack.ts'
import { type LocalStack, startLocalStack } from '../support/local-stack.ts'
import { inheritedEnvironment } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'

const run = promisify(execFile)
const database = testDatabase()
/** Downloads of the registry and generators may take minutes. */
const installMs = 600_000
let project: string
let stack: LocalStack

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'service-clients-'))
  await cp(join(import.meta.dirname, 'fixtures/clients'), project, { recursive: true })
  const tarball = await packCoreClient(project)
  await run('npm', ['install', '--no-audit', '--no-fund', tarball], { cwd: project })
  stack = await startLocalStack({ database })
  for (const name of ['openapi.json', 'openapi-3.1.json'])
    await writeFile(join(project, name), await (await fetch(`${stack.gateways[0]!.url}/docs/${name}`)).text())
  // The generators do not read `itemSchema`: from OpenAPI 3.2, the events of the stream have no type.
  await run24('openapi-typescript', 'openapi-3.1.json', '--output', 'api.d.ts')
  await run24('openapi-ts', '--input', 'openapi-3.1.json', '--output', 'hey-api')
  const compiled = run24('tsc', '-p', '.')
  expect((await compiled.catch(({ stdout }) => ({ stdout }))).stdout).toBe('')
}, installMs)

const run24 = (name: string, ...args: string[]) => {
  const PATH = `${dirname(process.execPath)}:${inheritedEnvironment().PATH}`
  return run('npx', [name, ...args], { cwd: project, env: { ...inheritedEnvironment(), PATH } })
}

test.each(['visitor.js', 'hey-visitor.js'])(
  'a visitor (%s) and an agent can chat with clients of other packages',
  async (program) => {
    const { gateways, cores, demo } = stack
    const visitor = spawn(process.execPath, [program, gateways[0]!.url, demo.origin, demo.siteKey], {
      cwd: project,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const lines = createInterface(visitor.stdout)[Symbol.asyncIterator]()
    const { conversationId } = JSON.parse(String((await lines.next()).value))
    const coreAddress = new URL(cores[0]!.url).host
    const agent = await run(process.execPath, ['agent.js', coreAddress, demo.serviceToken, conversationId], {
      cwd: project,
    })
    // 16 is gRPC's code UNAUTHENTICATED.
    expect(JSON.parse(agent.stdout)).toEqual({ isSame: true, refusal: 16 })
    expect(JSON.parse(String((await lines.next()).value))).toEqual({
      isSame: true,
      answer: 'Yes, we do.',
      history: ['Do you ship to Graz? 🏔', 'Yes, we do.'],
      refusal: 'GrantMissing',
    })
  },
)

test('spectral finds no problem in the API document, and both generators accept OpenAPI 3.2', async () => {
  const spectral = run24('spectral', 'lint', '--fail-severity', 'hint', 'openapi-3.1.json')
  await expect(spectral.catch(({ stdout }) => Promise.reject(new Error(stdout)))).resolves.toBeDefined()
  await run24('openapi-typescript', 'openapi.json', '--output', '3.2/api.d.ts')
  await run24('openapi-ts', '--input', 'openapi.json', '--output', '3.2/hey-api')
})
