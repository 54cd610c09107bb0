import { execFile, spawn } from 'node:child_process'
import { cp, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { packCoreClient } from '../../dev/pack.ts'
import { startLocalStack } from '../support/local-stack.ts'
import { testDatabase } from '../support/test-database.ts'

const run = promisify(execFile)
const database = testDatabase()
let project: string

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'service-clients-'))
  await cp(join(import.meta.dirname, 'fixtures/clients'), project, { recursive: true })
  const tarball = await packCoreClient(project)
  await run('npm', ['install', '--no-audit', '--no-fund', tarball], { cwd: project })
})

test('a visitor and an agent can chat with clients of other packages, and spectral finds no problem in the API document', async () => {
  const { gateways, cores, demo } = await startLocalStack({ database })
  const document = await (await fetch(`${gateways[0]!.url}/docs/openapi.json`)).text()
  await writeFile(join(project, 'openapi.json'), document)
  const spectral = run('npx', ['spectral', 'lint', '--fail-severity', 'hint', 'openapi.json'], { cwd: project })
  await expect(spectral.catch(({ stdout }) => Promise.reject(new Error(stdout)))).resolves.toBeDefined()
  await run('npx', ['openapi-typescript', 'openapi.json', '--output', 'api.d.ts'], { cwd: project })
  const compiled = run('npx', ['tsc', '-p', '.'], { cwd: project })
  expect((await compiled.catch(({ stdout }) => ({ stdout }))).stdout).toBe('')

  const visitor = spawn(process.execPath, ['visitor.js', gateways[0]!.url, demo.origin, demo.siteKey], {
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
})
