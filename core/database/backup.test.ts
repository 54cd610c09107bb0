import { copyFile, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Binary, type Document, Double, Int32, Long } from 'mongodb'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { testClient, testDatabase } from '../../test/support/test-database.ts'
import { openBackups, readBackup } from './backup.ts'

const [from, into] = [testDatabase({ isNew: true }), testDatabase({ isNew: true })]
const client = testClient()
let folder: string
let backups: Awaited<ReturnType<typeof openBackups>>

const documents: (Document & { _id: unknown })[] = [
  {
    _id: 'types',
    conversationId: 'cnv_1',
    sequence: 1,
    int: new Int32(1),
    double: new Double(1),
    long: Long.fromNumber(1),
    date: new Date(0),
    none: null,
  },
  {
    _id: 'bytes',
    conversationId: 'cnv_1',
    sequence: 2,
    bytes: new Binary(Buffer.from([0, 255])),
    nested: { list: [{ a: new Double(2) }] },
  },
]
const passphrase = 'correct horse battery'

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'service-backup-'))
  backups = await openBackups({ ...from, timeoutMs: 20_000 })
  const db = client.db(from.name)
  await db.collection<Document>('events').insertMany(documents as never)
  await db
    .collection<Document>('pictures')
    .insertMany(Array.from({ length: 1_200 }, (_, index) => ({ index, text: 'x'.repeat(index) })))
  await db.collection<Document>('wakeups').insertOne({ hint: 1 })
})
afterAll(async () => {
  await backups.close()
  await rm(folder, { recursive: true, force: true })
})

const file = (name: string, secret = '') => ({ path: join(folder, name), passphrase: secret })

it('writes a file for its owner only, which has all documents with their types, and the secrets', async () => {
  const content = await backups.write({ ...file('plain'), secrets: '{"secretKeys":"k1"}' })
  expect(content).toMatchObject({ counts: { events: 2, pictures: 1_200 }, secrets: '{"secretKeys":"k1"}' })
  expect(content.counts).not.toHaveProperty('wakeups')
  expect((await stat(join(folder, 'plain'))).mode & 0o777).toBe(0o600)
  const found: Document[] = []
  const read = await readBackup(file('plain'), async (collection, group) => {
    if (collection === 'events') found.push(...group)
  })
  expect(read).toEqual(content)
  const exact = { promoteValues: false } as const
  const stored = await client.db(from.name).collection('events').find({}, exact).toArray()
  expect(found.map(({ _id }) => _id)).toEqual(['types', 'bytes'])
  await backups.restore(file('plain'), into.name)
  expect(await client.db(into.name).collection('events').find({}, exact).toArray()).toEqual(stored)
  const names = (await client.db(into.name).collection('events').indexes()).map(({ name }) => name)
  expect(names).toContain('by_sequence')
})

it('encrypts on request, and rejects another passphrase and none', async () => {
  const content = await backups.write({ ...file('sealed', passphrase), secrets: 'PRIVATE' })
  expect((await readFile(join(folder, 'sealed'))).includes('PRIVATE')).toBe(false)
  expect(await readBackup(file('sealed', passphrase))).toEqual(content)
  await expect(readBackup(file('sealed', 'another passphrase'))).rejects.toThrow('the passphrase is another one')
  await expect(readBackup(file('sealed'))).rejects.toThrow('is encrypted: set BACKUP_PASSPHRASE')
})

it.each(['', passphrase])('rejects a file that is cut, changed, or something else (passphrase %j)', async (secret) => {
  const whole = file(`whole${secret.length}`, secret)
  await backups.write(whole)
  const { size } = await stat(whole.path)
  for (const length of [0, 3, 20, size >> 1, size - 1]) {
    const cut = file(`cut${length}`, secret)
    await copyFile(whole.path, cut.path)
    await truncate(cut.path, length)
    await expect(readBackup(cut), `${length} bytes`).rejects.toThrow(/damaged|cut off|no backup/)
  }
  for (const at of [60, size >> 1, size - 2]) {
    const bytes = await readFile(whole.path)
    bytes[at]! ^= 1
    const changed = file(`changed${at}`, secret)
    await writeFile(changed.path, bytes)
    await expect(readBackup(changed), `byte ${at}`).rejects.toThrow(/damaged|cut off|no backup/)
  }
  await writeFile(join(folder, 'text'), 'no backup')
  await expect(readBackup(file('text', secret))).rejects.toThrow('damaged or no backup')
  await expect(readBackup(file('missing', secret))).rejects.toThrow('There is no file')
})

it('keeps the time of the last success', async () => {
  await backups.record('backup')
  const { lastBackups } = await import('./backup.ts')
  expect(Object.keys(await lastBackups(client.db(from.name)))).toEqual(['backup'])
})
