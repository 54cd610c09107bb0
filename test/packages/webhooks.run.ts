import { execFile, spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { DeliveryStatus } from '#proto/lead/v1/delivery_pb.js'
import { packWebhooks } from '../../dev/make/pack.ts'
import { freePort } from '../support/free-port.ts'
import { checkReceiver } from '../support/hostile-deliveries.ts'
import { type LocalStack, startLocalStack } from '../support/local-stack.ts'
import { startLocalWorker } from '../support/local-worker.ts'
import { inheritedEnvironment } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)
const database = testDatabase()
/** Downloads of the registry may take minutes. */
const installMs = 600_000
const frameworks = ['node', 'fetch', 'express', 'fastify'] as const
let project: string
let stack: LocalStack

/** Installs the tarball in an empty project, and compiles the code of the document there. */
beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'service-webhooks-'))
  await cp(join(import.meta.dirname, 'fixtures/webhooks'), project, { recursive: true })
  const document = await readFile(join(import.meta.dirname, '../../docs/receiving-leads.md'), 'utf8')
  const codes = [...document.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code!)
  expect(codes).toHaveLength(frameworks.length)
  for (const [index, name] of frameworks.entries()) await writeFile(join(project, `${name}.ts`), codes[index]!)
  await run('npm', ['install', '--no-audit', '--no-fund', await packWebhooks(project)], { cwd: project })
  const compiled = run('npx', ['tsc', '-p', '.'], { cwd: project })
  expect((await compiled.catch(({ stdout }) => ({ stdout }))).stdout).toBe('')
  stack = await startLocalStack({ database, coreEnv: { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32' } })
  await startLocalWorker(stack)
}, installMs)

test.each(frameworks)('a receiver with %s accepts real deliveries and rejects hostile requests', async (name) => {
  const { leads } = stack.operator()
  const { workspaceId } = stack.demo
  const port = await freePort()
  const destinationUrl = `http://127.0.0.1:${port}/`
  const created = await leads.createSubscription({ workspaceId, destinationUrl, mappedFields: ['email'] })
  const { subscriptionId } = created.subscription!
  const receiver = spawn(process.execPath, [name === 'fetch' ? 'serve-fetch.js' : `${name}.js`, String(port)], {
    cwd: project,
    env: { ...inheritedEnvironment(), WEBHOOK_SECRET: created.secret, PORT: String(port), NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  onTestFinished(() => void receiver.kill('SIGKILL'))
  let output = ''
  receiver.stdout.on('data', (text) => {
    output += text
  })
  await until('the receiver', () =>
    fetch(destinationUrl).then(
      () => true,
      () => false,
    ),
  )

  const { leadId } = await leads.captureLead({ workspaceId, source: 'test', fields: { email: 'a@shop.example' } })
  await leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: name })
  await until('the delivery', async () => {
    const { deliveries } = await leads.listDeliveries({ workspaceId, subscriptionId })
    return deliveries[0]?.status === DeliveryStatus.ACCEPTED && output.includes(`${deliveries[0].deliveryId} ${leadId}`)
  })
  await checkReceiver(destinationUrl, created.secret)
})
