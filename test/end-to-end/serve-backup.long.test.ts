import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { buildConsoleIfStale } from '../../console/build.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { freePort, inheritedEnvironment, type StartedProcess, startProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { startVisitor, type Visitor } from '../support/visitor.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const database = testDatabase({ isNew: true })
const client = new MongoClient(database.uri)
const origin = 'https://shop.example'
let dataDir: string
let env: Record<string, string>
let gatewayUrl: string
let service: StartedProcess
let siteKey: string

const start = () =>
  startProcess({ entry: 'serve/main.ts', name: 'npm run serve', env, readyUrl: `${gatewayUrl}/readyz` })
const role = async (name: string, args: string[], more: Record<string, string> = {}) => {
  const settings = { cwd: root, env: { ...inheritedEnvironment(), ...env, ...more } }
  return (await run(process.execPath, ['serve/run.ts', name, ...args], settings)).stdout
}
const admin = async (...args: string[]) => JSON.parse(await role('admin', [...args, '--json']))
const newVisitor = () => startVisitor({ gatewayUrl, origin, siteKey })

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'service-backups-'))
  atFileEnd(() => rm(dataDir, { recursive: true, force: true }))
  await buildConsoleIfStale()
  env = {
    MONGODB_URI: database.uri,
    MONGODB_DATABASE: database.name,
    DATA_DIR: dataDir,
    LOG_LEVEL: 'warn',
    RATE_LIMIT_FACTOR: '1000',
    BACKUP_KEEP: '2',
    GATEWAY_PORT: String(await freePort()),
    CORE_PORT: String(await freePort()),
    METRICS_PORT: String(await freePort()),
  }
  gatewayUrl = `http://localhost:${env.GATEWAY_PORT}`
  service = await start()
  const [{ workspaceId }] = (await admin('workspaces', 'list')).workspaces
  const site = await admin('connections', 'create', '--workspace', workspaceId, '--name', 'Website')
  const flags = ['--connection', site.connection.connectionId, '--origin', origin]
  siteKey = (await admin('installations', 'create', ...flags)).installation.publicSiteKey
})
afterAll(() => client.close())

/** Sends until stopped. Returns the ids of all accepted messages. */
function write(visitor: Visitor) {
  let isStopped = false
  const accepted: string[] = []
  const done = (async () => {
    while (!isStopped) {
      const { status, body } = await visitor.sendUntilAccepted(`message ${accepted.length}`)
      expect(status).toBe(202)
      accepted.push(body.messageId)
    }
  })()
  return {
    accepted,
    async stop() {
      isStopped = true
      await done
    },
  }
}

const idsOf = async (visitor: Visitor) => (await visitor.history()).map(({ messageId }) => messageId)

it('a backup beside the running service has all messages accepted before it, without a gap, and passes its drill', async () => {
  const visitors = await Promise.all(Array.from({ length: 4 }, newVisitor))
  const writers = visitors.map(write)
  while (writers.some(({ accepted }) => accepted.length < 20)) await new Promise((resolve) => setImmediate(resolve))
  const before = writers.map(({ accepted }) => [...accepted])
  const output = await role('backup', ['--drill'])
  for (const writer of writers) await writer.stop()
  const all = writers.map(({ accepted }) => accepted)
  expect(output).toMatch(
    /Backed up and verified \d+ documents: .*\.backup\nRestored \d+ documents into a second database/,
  )
  const databases = (await client.db().admin().listDatabases({ nameOnly: true })).databases.map(({ name }) => name)
  expect(databases).not.toContain(`${database.name}_drill`)
  const metrics = await (await fetch(`http://127.0.0.1:${env.METRICS_PORT}/metrics`)).text()
  expect(metrics).toContain('service_core_backup_last_success_seconds')
  await service.stop()

  const [file = ''] = (await readdir(join(dataDir, 'backups'))).map((name) => join(dataDir, 'backups', name))
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  await expect(role('restore', [file])).rejects.toMatchObject({ stderr: expect.stringContaining('is not empty') })
  const secrets = await readFile(join(dataDir, 'secrets.json'), 'utf8')
  await client.db(database.name).dropDatabase()
  await rm(join(dataDir, 'secrets.json'))
  expect(await role('restore', [file])).toContain('Read the report')
  expect(await readFile(join(dataDir, 'secrets.json'), 'utf8')).toBe(secrets)

  service = await start()
  expect(service.output()).not.toContain('#sign-in=')
  for (const [index, visitor] of visitors.entries()) {
    const ids = await idsOf(visitor)
    expect(ids.slice(0, before[index]!.length)).toEqual(before[index])
    expect(ids).toEqual(all[index]!.slice(0, ids.length))
    expect((await visitor.sendUntilAccepted('after the restore')).status).toBe(202)
  }
})

it('a restore that replaces data keeps it as a backup, and reports what is undone', async () => {
  const visitor = await newVisitor()
  const kept = (await visitor.send('before')).body.messageId
  const passphrase = { BACKUP_PASSPHRASE: 'correct horse battery' }
  const file = join(dataDir, 'mine.backup')
  await role('backup', [file], passphrase)
  const lost = (await visitor.send('after')).body.messageId
  await service.stop()
  await expect(role('restore', [file, '--replace'])).rejects.toMatchObject({
    stderr: expect.stringMatching(/^restore: .* is encrypted: set BACKUP_PASSPHRASE\.\n$/),
  })
  const output = await role('restore', [file, '--replace'], passphrase)
  const report = await readFile(/Read the report: (\S+)/.exec(output)![1]!, 'utf8')
  expect(report).toContain(`- ${visitor.session.conversationId}: 1`)
  service = await start()
  expect(await idsOf(visitor)).toEqual([kept])
  await service.stop()

  const replaced = /The present data is in (\S+)/.exec(output)![1]!
  await role('restore', [replaced, '--replace'], passphrase)
  service = await start()
  expect(await idsOf(visitor)).toEqual([kept, lost])
})

it('keeps the newest backups only, and no other file', async () => {
  const folder = join(dataDir, 'backups')
  await writeFile(join(folder, 'notes.txt'), '')
  for (let count = 0; count < 3; count += 1) await role('backup', [])
  const names = await readdir(folder)
  expect(names.filter((name) => name.startsWith('service-'))).toHaveLength(2)
  expect(names).toContain('notes.txt')
  expect(names.filter((name) => name.startsWith('replaced-'))).toHaveLength(2)
  expect(await role('backup', [dataDir])).toContain(join(dataDir, 'service-'))
  await service.stop()
})
