import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Collection, Document } from 'mongodb'
import { pino } from 'pino'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { ConnectionStatus } from '#proto/workspace/v1/workspace_pb.js'
import { readCoreConfig } from '../../core/config.ts'
import { openDatabase } from '../../core/database/database.ts'
import { serveCore } from '../../core/server.ts'
import { isLong, itLong } from '../../test/support/is-long.ts'
import { operatorOf } from '../../test/support/operator.ts'
import { seedDemo } from '../demo-seed.ts'
import { backUp, restore } from '../engine/backup.ts'
import { attachEngine } from '../engine/engine.ts'
import { startLocalCore } from '../local-core.ts'

const run = promisify(execFile)
const database = readCoreConfig({}).MONGODB_DATABASE
const logger = pino({ level: 'silent' })
let folder: string
let dataDir: string
let file: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'backup-test-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  dataDir = join(folder, 'data')
  file = join(folder, 'service.backup')
})

/** Starts a core on a data folder with its demo, and returns an operator's clients. */
async function startService(dataDir: string) {
  const dev = { DATA_DIR: dataDir, NODE_ENV: 'development', DEMO_PORT: 0 }
  const { core, config } = await startLocalCore(readCoreConfig({}), dev, { logger })
  const demo = await seedDemo(core, config, dataDir)
  const server = await serveCore(core, { host: '', port: 0 })
  return {
    ...operatorOf(`http://127.0.0.1:${server.port}`, demo.serviceToken),
    workspaceId: demo.workspaceId,
    stop: async () => {
      await server.close()
      await core.stop()
    },
  }
}

/** Returns all documents and indexes of a data folder's database, as text. */
async function contentOf(dataDir: string): Promise<Record<string, string>> {
  const engine = await attachEngine({ dataDir, logger })
  const opened = await openDatabase({ uri: engine.uri, name: database, timeoutMs: 20_000 })
  const found: Record<string, string> = {}
  for (const [key, collection] of Object.entries(opened.collections) as unknown as [string, Collection<Document>][]) {
    const documents = await collection.find().sort({ _id: 1 }).toArray()
    const indexes = documents.length > 0 ? await collection.indexes() : []
    found[key] = JSON.stringify([documents, indexes])
  }
  await opened.close()
  await engine.stop()
  return found
}

test('a restored backup has the documents, indexes and secrets of the service, and the service works with them', async () => {
  const before = await startService(dataDir)
  const { workspaceId } = before
  const { leadId } = await before.leads.captureLead({ workspaceId, source: 'drill', fields: { name: 'Mia' } })
  await before.stop()
  const content = await contentOf(dataDir)
  expect(Object.values(content).join()).toContain('Mia')
  await backUp({ dataDir, file, logger })
  expect((await stat(file)).mode & 0o077).toBe(0)
  const secrets = await readFile(join(dataDir, 'secrets.json'), 'utf8')

  const later = await startService(dataDir)
  await later.leads.captureLead({ workspaceId, source: 'drill', fields: { name: 'After the backup' } })
  await later.stop()
  await expect(restore({ dataDir, file, logger, database })).rejects.toThrow('is not empty')
  await rm(dataDir, { recursive: true })

  const { report } = await restore({ dataDir, file, logger, database })
  expect(await readFile(report, 'utf8')).toContain('Unknown, because there was no readable data to compare')
  expect(await readFile(join(dataDir, 'secrets.json'), 'utf8')).toBe(secrets)
  expect(await contentOf(dataDir)).toEqual(content)
  const after = await startService(dataDir)
  const { leads } = await after.leads.listLeads({ workspaceId })
  expect(leads.map((lead) => [lead.leadId, lead.fields])).toEqual([[leadId, { name: 'Mia' }]])
  await after.leads.captureLead({ workspaceId, source: 'drill', fields: { name: 'After the restore' } })
  await after.stop()
})

test('a restore that replaces data keeps it, and reports what is undone', async () => {
  const before = await startService(dataDir)
  const { workspaceId } = before
  const { workspaces, leads } = before
  await workspaces.addSuppressions({ workspaceId, entries: [{ of: { case: 'email', value: 'kept@example.com' } }] })
  await leads.captureLead({ workspaceId, source: 'drill', fields: { name: 'Mia' } })
  await before.stop()
  await backUp({ dataDir, file, logger })

  const later = await startService(dataDir)
  const { leadId } = await later.leads.captureLead({ workspaceId, source: 'drill', fields: { name: 'Secret Name' } })
  await later.workspaces.addSuppressions({
    workspaceId,
    entries: [{ of: { case: 'email', value: 'new@example.com' } }],
  })
  await later.workspaces.rotateIdentitySecret({ siteKey: 'pk_demo' })
  await later.workspaces.setConnectionStatus({ connectionId: 'con_demo', status: ConnectionStatus.DISABLED })
  await later.stop()
  const engine = await attachEngine({ dataDir, logger })
  await expect(restore({ dataDir, file, logger, database, replaces: true })).rejects.toMatchObject({ reason: 'held' })
  await engine.stop()
  // A volume cannot be renamed or replaced, and the folder that holds it may not be writable.
  await mkdir(join(dataDir, 'lost+found'))
  const [{ ino }, around] = [await stat(dataDir), await stat(folder)]
  const { report, keptAs } = await restore({ dataDir, file, logger, database, replaces: true })
  expect((await stat(dataDir)).ino).toBe(ino)
  expect((await stat(folder)).mtimeMs).toBe(around.mtimeMs)
  const entries = await readdir(dataDir)
  expect(entries.filter((name) => name.startsWith('.'))).toEqual([])
  expect(entries).toContain('lost+found')

  const text = await readFile(report, 'utf8')
  expect((await stat(report)).mode & 0o077).toBe(0)
  for (const title of [
    'Suppressions that are lost: 1',
    'Identity secrets that are as before their rotation: 1',
    'Connections with an earlier status: 1',
    'Leads that are gone: 1',
    `- ${leadId}`,
    '- pk_demo',
    'Not known here',
  ])
    expect(text).toContain(title)
  // The report names ids only.
  expect(text).not.toMatch(/Secret Name|new@example\.com|Suppressions that are back/)
  expect(await readdir(keptAs!)).toContain('mongodb')
  await backUp({ dataDir, file, logger })
  expect((await run('tar', ['tzf', file])).stdout).not.toMatch(/replaced|lost/)
  const after = await startService(dataDir)
  expect((await after.leads.listLeads({ workspaceId })).leads.map(({ fields }) => fields)).toEqual([{ name: 'Mia' }])
  await after.stop()
})

test('a restore whose present data cannot be read says so in its report', async () => {
  await (await startService(dataDir)).stop()
  await backUp({ dataDir, file, logger })
  await rm(join(dataDir, 'mongodb'), { recursive: true })
  await mkdir(join(dataDir, 'mongodb'))
  await writeFile(join(dataDir, 'mongodb/WiredTiger'), 'damaged')
  await writeFile(join(dataDir, 'mongodb/WiredTiger.turtle'), 'damaged')
  const { report, keptAs } = await restore({ dataDir, file, logger, database, replaces: true })
  expect(await readFile(report, 'utf8')).toContain('Unknown, because there was no readable data to compare')
  expect(await readFile(join(keptAs!, 'mongodb/WiredTiger'), 'utf8')).toBe('damaged')
})

itLong('a backup of a running service is refused and leaves no file', async () => {
  const engine = await attachEngine({ dataDir, logger })
  await expect(backUp({ dataDir, file, logger })).rejects.toMatchObject({ reason: 'held' })
  await engine.stop()
  expect((await readdir(folder)).sort()).toEqual(['data'])
})

itLong('a truncated archive and an archive that is no backup are refused, and leave no file', async () => {
  const engine = await attachEngine({ dataDir, logger })
  await engine.stop()
  await backUp({ dataDir, file, logger })
  const target = join(folder, 'restored')
  await truncate(file, (await stat(file)).size - 100)
  await expect(restore({ dataDir: target, file, logger, database })).rejects.toThrow(/tar/)

  const other = join(folder, 'other')
  await mkdir(other)
  await writeFile(join(other, 'notes.txt'), 'no backup')
  await run('tar', ['czf', file, '-C', other, '.'])
  await expect(restore({ dataDir: target, file, logger, database })).rejects.toThrow('is no backup')
  expect(await readdir(target)).toEqual([])
  expect((await readdir(folder)).sort()).toEqual(['data', 'other', 'restored', 'service.backup'])
})

const inMounts = (script: string) => run('unshare', ['--user', '--map-root-user', '--mount', 'sh', '-ec', script])
const canMount = await inMounts('mount -t tmpfs none /mnt').then(
  () => true,
  () => false,
)

test.runIf(isLong && canMount)('a backup is restored onto an empty volume, and onto one with data', async () => {
  await (await startService(dataDir)).stop()
  await backUp({ dataDir, file, logger })
  const command = `DATA_DIR=${folder}/volume ${process.execPath} dev/backup.ts restore ${file}`
  const { stdout } = await inMounts(`
    mkdir ${folder}/volume
    mount -t tmpfs none ${folder}/volume
    ${command}
    ${command} --replace
    ls ${folder}/volume ${folder}/volume/replaced-*
  `)
  expect(stdout.match(/^mongodb$/gm)).toHaveLength(2)
  expect(await readdir(join(folder, 'volume'))).toEqual([])
})
