import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packCoreClient } from '../../dev/make/pack.ts'
import { startLocalStack } from '../support/local-stack.ts'
import { testDatabase } from '../support/test-database.ts'

const run = promisify(execFile)
const modules = join(import.meta.dirname, '../../node_modules')
const database = testDatabase()
let project: string

/** Installs the tarball without a registry: links exactly the packages that its manifest names, and Node's types. */
beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'core-client-consumer-'))
  const tarball = await packCoreClient(project)
  const installed = join(project, 'node_modules/@service/core-client')
  await mkdir(installed, { recursive: true })
  await run('tar', ['xzf', tarball, '--strip-components', '1', '-C', installed])
  const { dependencies } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
  expect(Object.keys(dependencies).filter((name) => name.startsWith('@opentelemetry'))).toEqual([])
  expect(existsSync(join(installed, 'proto/service/bot/v1/bot.proto'))).toBe(true)
  for (const name of [...Object.keys(dependencies), '@types/node', 'undici-types']) {
    await mkdir(dirname(join(project, 'node_modules', name)), { recursive: true })
    await symlink(join(modules, name), join(project, 'node_modules', name))
  }
  await writeFile(join(project, 'package.json'), '{"private":true,"type":"module"}')
})
afterAll(() => rm(project, { recursive: true, force: true }))

const program = `
import { ConnectError, createClient } from '@connectrpc/connect'
import { connectService, errorInfoOf } from '@service/core-client'
import { EventsService } from '@service/core-client/proto/events/v1/events_pb.js'
import { MessagingService } from '@service/core-client/proto/messaging/v1/messaging_pb.js'

const [, , url = '', token = '', conversationId = '', workspaceId = ''] = process.argv
const { transport, stop } = await connectService({ urls: ['http://127.0.0.1:1', url], token })
const messaging = createClient(MessagingService, transport)
const send = () =>
  messaging.sendAgentMessage({ conversationId, clientOperationId: 'one', body: 'We do.', agent: { displayName: 'Ada' } })
const [first, repeated] = [await send(), await send()]
const refused: unknown = await messaging.listMessages({ conversationId: 'cnv_missing' }).catch((error: unknown) => error)
// The stream is open for longer than the deadline of the calls.
const deadlineMs = 200
const short = await connectService({ urls: [url], token, deadlineMs })
const opened = performance.now()
let streamed = ''
for await (const { events } of createClient(EventsService, short.transport).followEvents({ workspaceId })) {
  streamed = events.find(({ message }) => message?.message?.body === 'Later.')?.type ?? streamed
  if (streamed !== '') break
  const later = { conversationId, clientOperationId: 'later', body: 'Later.', agent: { displayName: 'Ada' } }
  setTimeout(() => void messaging.sendAgentMessage(later), 5 * deadlineMs)
}
const outlived = performance.now() - opened > deadlineMs
short.stop()
stop()
const same: boolean = first.message?.messageId === repeated.message?.messageId
process.stdout.write(JSON.stringify({ same, streamed, outlived, code: errorInfoOf(ConnectError.from(refused))?.code }))
`

test('an internal service that installs the package sends a message once, although one core is unreachable', async () => {
  await writeFile(join(project, 'service.ts'), program)
  const options = ['--strict', '--target', 'es2024', '--module', 'nodenext', '--types', 'node']
  const compiled = run(join(modules, '.bin/tsc'), [...options, 'service.ts'], { cwd: project })
  expect(await compiled.catch(({ stdout }) => ({ stdout }))).toMatchObject({ stdout: '' })
  const stack = await startLocalStack({ database })
  const visitor = await stack.newVisitor()
  const { conversationId } = visitor.session
  const { stdout } = await run(
    process.execPath,
    ['service.js', stack.cores[0]!.url, stack.demo.serviceToken, conversationId, stack.demo.workspaceId],
    { cwd: project },
  )
  expect(JSON.parse(stdout)).toEqual({ same: true, streamed: 'message.agent', outlived: true, code: 'NotFound' })
  const { messages } = await stack.operator().messaging.listMessages({ conversationId })
  expect(messages.map(({ body }) => body)).toEqual(['We do.', 'Later.'])
})
